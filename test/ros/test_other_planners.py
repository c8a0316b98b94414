"""Two planners in one namespace notice each other; the one may refuse to be the second."""

from pathlib import Path

import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from nodes import Client

from timely_llm.protocols.messages import ErrorCode
from timely_llm.ros.other_planners import RECENT, OtherPlanners

PLANS = Path(__file__).parents[2] / "test" / "data" / "plans.yaml"
SIMULATED = {"engine": "simulated", "model": PLANS, "status_period": 0.1}
WARNING = "another planner is heard in this namespace, "


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def others(told: list[str]) -> OtherPlanners:
    made = OtherPlanners(told.append)
    made.own("me")
    return made


def test_its_own_names_are_no_others(others: OtherPlanners, told: list[str]) -> None:
    others.own("me again")
    for name in ("me", "me again"):
        others.hear(name, 1.0)
    assert (others.there(1.0), told) == ((), [])


def test_each_other_one_is_told_once_until_it_has_gone(
    others: OtherPlanners, told: list[str]
) -> None:
    for now in (1.0, 2.0, 2.0 + RECENT):
        others.hear("another one", now)
    assert others.there(2.0 + RECENT) == ("another one",)
    assert len(told) == 1 and told[0].startswith(f"{WARNING}another ")
    assert others.there(2.5 + 2 * RECENT) == ()
    others.hear("another one", 2.5 + 2 * RECENT)
    assert len(told) == 2


def test_names_that_nobody_has_do_not_pile_up(others: OtherPlanners) -> None:
    for number in range(1000):
        others.hear(str(number), 1.0)
    assert others.there(1.0) == tuple(map(str, range(984, 1000)))


def test_two_planners_say_so_and_the_robot_keeps_its_own(start, client: Client) -> None:
    first = start("planner", **SIMULATED)
    start("robot", robot_id="d1", heartbeat_period=0.1)
    client.wait_for_robots("d1")
    session = client.robots["d1"].session
    levels: list[int] = []
    client.node.create_subscription(
        DiagnosticArray,
        "/diagnostics",
        lambda m: levels.extend(
            s.level[0] for s in m.status if any(v.key == "other planners" for v in s.values)
        ),
        10,
    )
    client.listen("d1")
    second = start("planner", **SIMULATED)
    for planner in (first, second):
        client.until(lambda planner=planner: WARNING in planner.output(), "the warning")
    client.until(lambda: len(levels) >= 2, "diagnostics of both")
    assert set(levels) == {DiagnosticStatus.WARN[0]}
    heard = client.executions["d1"]
    heard.clear()
    client.until(lambda: len(heard) >= 40, "4 s of the robot's reports")
    assert {report.session for report in heard} == {session}
    second.kill()
    assert client.goal("d1", "wait a little").result()[0] is ErrorCode.NONE


def test_a_planner_that_is_to_be_the_only_one_is_no_second(start, client: Client) -> None:
    start("planner", **SIMULATED, sole_planner=True)
    start("robot", robot_id="d1", heartbeat_period=0.1)
    client.wait_for_robots("d1")
    second = start("planner", **SIMULATED, sole_planner=True)
    assert second.wait() == 1
    assert "planner: parameter 'sole_planner': another planner is there, " in second.output()
    assert client.goal("d1", "wait a little").result()[0] is ErrorCode.NONE
