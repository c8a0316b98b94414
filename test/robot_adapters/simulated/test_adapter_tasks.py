"""The published tasks in the bundled worlds, with nothing but a clock standing in."""

from __future__ import annotations

import json

import pytest
from pilot import INDY7, TELLO
from segment_reference import segments

from robot_adapters.adapter import make_adapter
from robot_adapters.executor.executor import RobotExecutor
from timely_llm.paths import share
from timely_llm.protocols.messages import ExecutionState, Segment

State = ExecutionState
TASKS = json.loads(share("timely_llm", "data", "lrtrace_tasks.json").read_text())["tasks"]
#: Where a drone stands for a task, and what comes of it in the bundled house.
STARTS = {
    1: {},
    2: {"y": 0.5, "yaw": 90.0},
    3: {"x": -0.5, "yaw": 180.0},
}


def fly(task: dict, **parameters) -> tuple[list[str], RobotExecutor]:
    """Carry out the published plan on virtual time; the calls done, and the end in words."""
    skills = TELLO if task["robot"] == "drone" else INDY7
    robot = RobotExecutor(make_adapter("simulated", "r1", skills, **parameters))
    log, now = [], 0.0
    reports = robot.new_session(1, now, "p")
    parts = segments(task["plan"], skills)
    for index, text in enumerate(parts):
        last = index == len(parts) - 1
        reports += robot.on_segment(Segment(1, "a" * 32, index, text=text, last=last), now)
    while not any(r.state in (State.PLAN_RETURNED, State.FAILED) for r in reports):
        now = robot.next_wake(now)
        robot.on_planner_heartbeat("p", now)
        reports += robot.tick(now)
    for report in reports:
        if report.state is State.SUCCEEDED:
            value = f" {report.value}" if report.has_value else ""
            log.append(f"{report.call.name}({','.join(report.call.evaluated)}){value}")
        elif report.state in (State.PLAN_RETURNED, State.FAILED):
            log.append(f"{report.state.name} {report.value or report.error}".strip())
    return log, robot


EXPECTED = {
    0: ["s(cat) True", "g(cat)", "PLAN_RETURNED"],
    1: ["iv(keys) True", "iv(wallet) True", "l(Yes)", "PLAN_RETURNED True"],
    2: ["mu(40)", "iv(book) True", "tp()", "PLAN_RETURNED True"],
    3: ["md(40)", "iv(toy) True", "g(toy)", "PLAN_RETURNED"],
    4: ["s(scissors) True", "g(scissors)", "PLAN_RETURNED"],
    5: ["mr(50)", "mf(50)", "PLAN_RETURNED"],
    6: ["mu(50)", "ml(50)", "PLAN_RETURNED"],
    7: ["d(3)", "mf(50)", "PLAN_RETURNED"],
    8: ["sc(red box) True", "gt(red box)", "pi(red box)", "sc(blue box) True", "gt(blue box)",
        "dr()", "sc(green box) True", "gt(green box)", "pi(green box)", "sc(red box) True",
        "gt(red box)", "dr()", "PLAN_RETURNED"],
}  # fmt: skip


@pytest.mark.parametrize("task", TASKS, ids=lambda task: str(task["id"]))
def test_the_published_tasks_come_to_their_end_in_the_bundled_worlds(task) -> None:
    log, robot = fly(task, **STARTS.get(task["id"], {}))
    assert log[-1].startswith("PLAN_RETURNED")
    assert "False" not in " ".join(log[:-1])
    if task["id"] in EXPECTED:
        assert [line.removesuffix(" False") for line in log] == EXPECTED[task["id"]]


@pytest.mark.parametrize("task_id", [2, 3])
def test_the_book_and_the_toy_are_seen_only_after_the_move(task_id: int) -> None:
    task = dict(TASKS[task_id], plan=TASKS[task_id]["plan"].partition(";")[2])
    log, _ = fly(task, **STARTS[task_id])
    assert log == [f"iv({'book' if task_id == 2 else 'toy'}) False", "PLAN_RETURNED False"]


def test_the_same_seed_gives_the_same_flight() -> None:
    task = TASKS[10]
    assert fly(task, seed=5)[0] == fly(task, seed=5)[0]
