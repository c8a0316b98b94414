"""Robots a planner knows: sessions, ids, skill sets, who comes and goes."""

import pytest
from fleet_sim import FleetSim
from robot_cases import PLANS, register, robots
from sim_parts import WALKER

from timely_llm.core import events as ev
from timely_llm.core import robots as core_robots
from timely_llm.protocols.messages import ErrorCode

# Registering.


def test_a_registration_gives_a_session_and_a_place_in_the_list():
    run = FleetSim(PLANS)
    answer = register(run, robot_namespace="/floor2/r9")
    assert (answer.code, answer.error, answer.session) == (ErrorCode.NONE, "", 1)
    (info,) = run.planner.state.fleet.infos()
    assert (info.robot_id, info.kind, info.robot_namespace) == ("r9", "walker", "/floor2/r9")
    assert (info.session, info.alive, info.stopped) == (1, True, False)
    assert register(run, robot_id="r8", at=1.0).session == 2
    assert robots(run) == ["r8", "r9"]


@pytest.mark.parametrize(
    ("fields", "code", "message"),
    [
        (
            {"kind": "walkr"},
            "INVALID_SKILL_SET",
            "kind 'walkr' is unknown and no skill_set is given (known: walker)",
        ),
        (
            {"kind": "crawler", "skill_set": WALKER},
            "INVALID_SKILL_SET",
            "kind is 'crawler' but the skill set's is 'walker': leave one out",
        ),
        (
            {"robot_id": ""},
            "INVALID_GOAL",
            "robot_id '': must be 1 to 64 printable letters",
        ),
        (
            {"robot_id": "a\nb"},
            "INVALID_GOAL",
            "robot_id 'a\\nb': must be 1 to 64 printable letters",
        ),
    ],
)
def test_a_wrong_registration_is_refused_with_the_field(fields, code, message):
    run = FleetSim(PLANS)
    answer = register(run, **fields)
    assert (answer.code.name, answer.error, answer.session) == (code, message, 0)
    assert list(run.planner.state.fleet) == []


def test_a_wrong_skill_set_is_refused_with_its_line():
    run = FleetSim(PLANS)
    answer = register(run, kind="", skill_set="kind: walker\nskils: []\n")
    assert answer.code is ErrorCode.INVALID_SKILL_SET
    assert answer.error.startswith("skill_set of r9:2: ")
    assert "did you mean 'skills'?" in answer.error


def test_a_robot_may_bring_a_skill_set_of_its_own():
    run = FleetSim(PLANS)
    answer = register(run, kind="", skill_set=WALKER.replace("walker", "crawler"))
    assert answer.code is ErrorCode.NONE
    assert run.planner.state.fleet.find("r9").skills.kind == "crawler"


def test_an_inactive_planner_registers_nobody():
    run = FleetSim(PLANS)
    run.tell(ev.Deactivate())
    assert register(run).code is ErrorCode.PLANNER_INACTIVE


# Two robots, one id; the same robot again.


def test_a_second_robot_of_the_same_id_is_refused_while_the_first_is_alive():
    run = FleetSim(PLANS)
    first = run.add_robot("r1")
    second = run.add_robot("r1", at=1.0, instance="another")
    run.robots["r1"] = first
    plan = run.goal("r1", "long", at=1.5)
    run.finish()
    assert second.refusals[0] == (
        ErrorCode.ROBOT_EXISTS,
        "robot_id 'r1' is registered by another adapter that is alive",
    )
    assert (first.session, second.session) == (1, 0)
    assert run.result(plan).error_code is ErrorCode.NONE
    assert second.body.done == []


def test_the_second_robot_takes_the_id_when_the_first_is_gone():
    run = FleetSim(PLANS)
    first = run.add_robot("r1")
    second = run.add_robot("r1", at=1.0, instance="another")
    run.at(1.5, lambda: setattr(first, "alive", False))
    run.run(10.0)
    assert second.session == 2
    plan = run.goal("r1", "short", at=10.0)
    run.finish()
    assert run.result(plan).error_code is ErrorCode.NONE


# Unregistering.


def test_unregistering_ends_the_robot_s_goals_and_frees_the_id():
    run = FleetSim(PLANS)
    run.add_robot("r1")
    run.add_robot("r2")
    plan = run.goal("r1", "long", at=1.0)
    queued = run.goal("r1", "short", at=1.1)
    ticket = run.ask(lambda t: ev.UnregisterRobot(t, "r1", session=1), at=2.0)
    refused = run.goal("r1", "short", at=3.0)
    run.run(2.01)
    assert robots(run) == ["r2"]
    run.finish()
    assert run.answers[ticket] == ev.Answered(ticket, robots=("r1",))
    for ended in (plan, queued):
        assert run.result(ended).error_code is ErrorCode.ROBOT_LOST
        assert run.result(ended).error_msg == "robot 'r1' was unregistered"
    assert run.commands("r1")[-1] == "2.000 CANCEL"
    assert run.result(refused).error_code is ErrorCode.UNKNOWN_ROBOT
    assert robots(run) == ["r1", "r2"]  # its node lives, hears of it and registers again
    assert len(run.motions("r1")) == 1


@pytest.mark.parametrize(
    ("robot_id", "session", "code", "message"),
    [
        ("r9", 0, ErrorCode.UNKNOWN_ROBOT, "robot_id 'r9' is not registered"),
        ("r1", 7, ErrorCode.INVALID_SESSION, "session 7 of robot 'r1' is over"),
    ],
)
def test_a_wrong_unregistration_changes_nothing(robot_id, session, code, message):
    run = FleetSim(PLANS)
    run.add_robot("r1")
    ticket = run.ask(lambda t: ev.UnregisterRobot(t, robot_id, session), at=1.0)
    plan = run.goal("r1", "short", at=2.0)
    run.finish()
    assert (run.answers[ticket].code, run.answers[ticket].error) == (code, message)
    assert run.result(plan).error_code is ErrorCode.NONE


def test_no_more_robots_are_known_than_fit(monkeypatch):
    monkeypatch.setattr(core_robots, "MOST_ROBOTS", 3)
    run = FleetSim(PLANS)
    for number in range(3):
        assert register(run, robot_id=f"r{number}", at=float(number)).code is ErrorCode.NONE
    refused = register(run, robot_id="r3", at=3.0)
    words = "3 robots are registered: at most 3; unregister one"
    assert (refused.code, refused.error) == (ErrorCode.OVERLOADED, words)
    assert register(run, robot_id="r1", at=4.0).code is ErrorCode.NONE  # it is known already


def test_no_more_kinds_are_known_than_fit(monkeypatch):
    """What is learned of a kind stays when its robots are gone."""
    monkeypatch.setattr(core_robots, "MOST_KINDS", 2)
    run = FleetSim(PLANS)
    for number, code in enumerate([ErrorCode.NONE] * 2 + [ErrorCode.OVERLOADED]):
        text = WALKER.replace("kind: walker", f"kind: walker_{number}")
        answer = register(run, robot_id="r1", kind="", skill_set=text, at=float(number))
        assert answer.code is code
    assert answer.error == "kind 'walker_2' is new, and 2 kinds are known: at most 2"
