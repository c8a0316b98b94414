"""A board in the middle of a day, made of messages as they come from the planner and the robots.

A stand-in for a fleet, in tests of what is shown of one."""

from __future__ import annotations

from timely_llm.live.fleet_state import FleetState
from timely_llm.protocols.messages import (
    ErrorCode,
    Execution,
    ExecutionState,
    PlanEvent,
    PlanEventType,
    PlanGoal,
    PlannerStatus,
    PlanResult,
    RobotInfo,
    SkillCall,
)
from timely_llm.protocols.utility import Urgency

P1, P2, P3, P4 = (str(number) * 32 for number in (1, 2, 3, 4))
STATUS = PlannerStatus(
    instance="ab" * 16, policy="least_loss", model="/models/tiny_planner", engine="simulated 1",
    pace="rtx4090-llama3-8b", robots=3, waiting=1, running=1, suspended=0, executing=0,
    kv_blocks_used=30, kv_blocks_total=1000, step_time=0.0215, overhead=0.0007,
    prompt_tokens_recomputed=0,
)  # fmt: skip
ROBOTS = (
    RobotInfo("drone_1", "tello", "/drone_1", 1, "", alive=True),
    RobotInfo("drone_2", "tello", "/drone_2", 2, "", alive=True, stopped=True),
    RobotInfo("arm_1", "indy7", "/arm_1", 3, "", alive=False),
)


def event(plan_id: str, robot: str, kind: PlanEventType, **fields: object) -> PlanEvent:
    return PlanEvent(plan_id, robot, kind, **fields)


def accepted(board: FleetState, plan_id: str, robot: str, words: str, now: float, **more) -> None:
    goal = PlanGoal(robot, words, **more)
    board.follow_event(event(plan_id, robot, PlanEventType.ACCEPTED, goal=goal), now)


def segment(board: FleetState, plan_id: str, robot: str, index: int, text: str, now: float) -> None:
    kind = PlanEventType.SEGMENT
    board.follow_event(event(plan_id, robot, kind, segment=index, text=text, tokens=5), now)


def reports(
    board: FleetState, plan_id: str, robot: str, state: ExecutionState, now: float, **more
) -> None:
    board.follow_execution(robot, Execution(1, 1, plan_id, state, **more), now)


def ended(board: FleetState, result: PlanResult, robot: str, now: float) -> None:
    kind = PlanEventType.ENDED
    board.follow_event(event(result.plan_id, robot, kind, result=result), now)


def busy() -> FleetState:
    """At 10 s: drone_1 flies the second of three segments; a goal for drone_1 waits; drone_2 failed
    and is stopped; arm_1 is silent and done."""
    board = FleetState()
    board.follow_status(STATUS, 9.8)
    board.follow_robots(ROBOTS)
    accepted(board, P2, "drone_2", "Fly to the moon", 1.0, urgency=Urgency.URGENT)
    segment(board, P2, "drone_2", 0, "mf(9)", 1.5)
    failed = PlanResult(
        P2, ErrorCode.SKILL_FAILED, "mf(9): out of range", response_time=0.5, waiting_time=0.7,
        utility=-0.25, generated_tokens=12,
    )  # fmt: skip
    ended(board, failed, "drone_2", 2.0)
    accepted(board, P3, "arm_1", "Is there a cup?", 3.0)
    segment(board, P3, "arm_1", 0, "?iv('cup')==True{->True}", 3.25)
    done = PlanResult(
        P3, value="True", response_time=0.25, waiting_time=0.25, execution_time=1.5, utility=1.0,
        generated_tokens=20,
    )  # fmt: skip
    ended(board, done, "arm_1", 5.0)
    accepted(board, P1, "drone_1", "Find the <b>cat</b>", 6.0, urgency=Urgency.CRITICAL)
    board.follow_event(event(P1, "drone_1", PlanEventType.STARTED), 6.0)
    for index, text in enumerate(("tc(90)", ";?s('cat')", "==True{g('cat')}")):
        segment(board, P1, "drone_1", index, text, 7.0 + index)
    call = SkillCall("s", ("'cat'",), ("cat",))
    started = ExecutionState.STARTED
    reports(board, P1, "drone_1", started, 8.0, segment=1, call=call, total_remaining=5.0)
    accepted(board, P4, "drone_1", "Land", 9.5, urgency=Urgency.LOW)
    board.follow_event(event(P4, "drone_1", PlanEventType.QUEUED), 9.5)
    return board
