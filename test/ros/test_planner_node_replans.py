"""Goals planned again, over real DDS: the node, a robot's process and the simulated engine.

The simulated engine stands in for a model; exact times are in ``test/core/test_replans.py``.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from nodes import Client

from timely_llm.action import Plan
from timely_llm.protocols.messages import ErrorCode, ExecutionState, PlanEventType, SegmentCommand
from timely_llm.ros.conversions import uuid_from_ros

PLANS = Path(__file__).parents[2] / "test" / "data" / "plans.yaml"


@pytest.fixture
def fleet(start, client: Client) -> Client:
    start("planner", engine="simulated", model=PLANS, status_period=0.2)
    start("robot", robot_id="d1", heartbeat_period=0.1)
    client.wait_for_robots("d1")
    client.listen("d1")

    def heard() -> bool:  # whoever has just begun to listen misses what was said before
        assert client.goal("d1", "wait a little").result()[0] is ErrorCode.NONE
        return bool(client.segments["d1"] and client.executions["d1"])

    client.until(heard, "a segment and a report")
    return client


def test_a_failure_and_a_wish_are_planned_again_and_nothing_moves_twice(fleet: Client) -> None:
    replan = fleet.goal("d1", "too far as evaluated", on_failure=Plan.Goal.REPLAN)
    code, result = replan.result()
    assert (code, result.error_msg, result.replans) == (ErrorCode.NONE, "", 1)
    first, second = result.plan.split("\n")
    assert (first[:12], second) == ("_1=5000;d(0.", "d(0.2);d(0.3);")
    plan_id = uuid_from_ros(result.plan_id)

    asked = fleet.goal("d1", "ask for another", max_replans=2)
    code, result = asked.result()
    assert (code, result.value, result.replans) == (ErrorCode.NONE, "enough", 1)

    sent = [s for s in fleet.segments["d1"] if uuid_from_ros(s.plan_id) == plan_id]
    assert [s.index for s in sent] == list(range(len(sent)))
    assert [s.command for s in sent].count(SegmentCommand.REPLACE) == 1
    reports = [r for r in fleet.executions["d1"] if r.state is ExecutionState.STARTED]
    own = [(r.call_number, r.call.name, r.call.evaluated) for r in reports if r.plan_id == plan_id]
    waits = [("d", ("0.2",)), ("d", ("0.2",)), ("d", ("0.3",))]
    assert [call[0] for call in own] == [0, 1, 2]
    assert [call[1:] for call in own] == waits
    events = [e for e in fleet.events if e.type is PlanEventType.REPLANNED]
    assert events[0].result.error_code is ErrorCode.SKILL_FAILED
    assert "mf" in events[0].result.error_msg
    assert "asked for another one" in events[1].result.error_msg
