"""What is shown of a fleet, as plain JSON values: the same in ``timely-llm top`` and on the page.

Pure: a function of the fleet's state and the time in s. Keys that end in ``_s`` are s; a number
that is not known is None.
"""

from __future__ import annotations

from typing import Any

from timely_llm.live.fleet_state import FleetState, PlanTrack, RobotTrack, urgency_word
from timely_llm.protocols.messages import ErrorCode, PlanResult
from timely_llm.validation.outgoing import finite

SILENT = 3.0  # s without a heartbeat, after which the planner is shown as silent
SHOWN_RESULTS = 20
SHOWN_QUEUE = 50
SHOWN_SEGMENTS = 40  # of a plan in the fleet's view; its detail has all


def view(fleet: FleetState, now: float) -> dict[str, Any]:
    """The whole picture at ``now``."""
    queue = list(fleet.queue())
    results = list(fleet.over)[: -SHOWN_RESULTS - 1 : -1]
    shown = {
        "planner": _planner(fleet, now),
        "engine": _engine(fleet, now),
        "robots": [_robot(fleet, track, now) for track in fleet.robots.values()],
        "queue": [_goal(plan) | _waiting(plan, now) for plan in queue[:SHOWN_QUEUE]],
        "queue_length": len(queue),
        "results": [_result(plan, plan.result, now) for plan in results if plan.result],
        "totals": _totals(fleet),
    }
    return dict(finite(shown))


def detail(fleet: FleetState, plan_id: str, now: float) -> dict[str, Any] | None:
    """All of one plan, or None where it is not known any more."""
    plan = fleet.find(plan_id)
    if plan is None:
        return None
    shown = plan_view(plan, now, len(plan.segments))
    if plan.result is not None:
        shown["result"] = _result(plan, plan.result, now)
    return dict(finite(shown | {"robot": plan.goal.robot_id, "scene": plan.goal.scene}))


def _planner(fleet: FleetState, now: float) -> dict[str, Any]:
    status, silent = fleet.status, fleet.silent(now)
    if status is None:
        return {"state": "unheard"}
    return {
        "state": "silent" if silent > SILENT else "running",
        "silent_s": round(silent, 1) if silent > SILENT else 0.0,
        "policy": status.policy,
        "model": status.model.rstrip("/").rpartition("/")[2],
        "engine": status.engine,
        "pace": status.pace,
    }


def _engine(fleet: FleetState, now: float) -> dict[str, Any]:
    status = fleet.status
    if status is None:
        return {}
    total = status.kv_blocks_total
    return {
        "waiting": status.waiting,
        "running": status.running,
        "suspended": status.suspended,
        "executing": status.executing,
        "kv_used": status.kv_blocks_used,
        "kv_total": total,
        "kv_share": round(status.kv_blocks_used / total, 4) if total else 0.0,
        "step_ms": round(status.step_time * 1e3, 2),
        "overhead_ms": round(status.overhead * 1e3, 2),
        "tokens_per_s": round(fleet.tokens_per_second(now), 1),
        "recomputed": status.prompt_tokens_recomputed,
    }


def _robot(fleet: FleetState, track: RobotTrack, now: float) -> dict[str, Any]:
    info, left = track.info, track.left(now)
    plan, queued = fleet.current(info.robot_id)
    return {
        "id": info.robot_id,
        "kind": info.kind,
        "state": robot_state(info.alive, info.stopped),
        "busy": left is not None,
        "horizon_s": None if left is None else round(left, 1),
        "error": track.error,
        "plan": None if plan is None else plan_view(plan, now, SHOWN_SEGMENTS),
        "queued": queued,
    }


def robot_state(alive: bool, stopped: bool) -> str:
    """One word for the state of a robot: the worst that is so."""
    return "silent" if not alive else "stopped" if stopped else "alive"


def plan_view(plan: PlanTrack, now: float, limit: int) -> dict[str, Any]:
    """A plan and the last ``limit`` of its segments."""
    skipped = max(0, len(plan.segments) - limit)
    waiting = plan.waiting(now) if plan.result is None else plan.result.waiting_time
    return {
        "plan_id": plan.plan_id,
        "urgency": urgency_word(plan.goal.urgency),
        "instruction": plan.goal.instruction,
        "state": state_word(plan),
        "over": plan.over,
        "segments": [
            {"index": index, "text": text, "state": _segment_state(plan, index)}
            for index, text in enumerate(plan.segments[skipped:], skipped)
        ],
        "skipped": skipped,
        "failures": list(plan.failures),
        "call": plan.call,
        "waiting_s": round(waiting, 2),
        "waits": plan.waits_since is not None,
        "tokens": plan.tokens,
    }


def _segment_state(plan: PlanTrack, index: int) -> str:
    if index in plan.gone:
        return plan.gone[index]
    if index == plan.segment and plan.call:
        return "running"
    code = None if plan.result is None else plan.result.error_code
    if index == plan.segment and code is ErrorCode.SKILL_FAILED:
        return "failed"
    return "done" if index <= plan.segment or code is ErrorCode.NONE else "sent"


def state_word(plan: PlanTrack) -> str:
    """What a plan is doing, or how it ended, in a word."""
    if plan.result is not None:
        return plan.result.error_code.name.lower() if plan.result.error_code else "done"
    return plan.state


def _goal(plan: PlanTrack) -> dict[str, Any]:
    return {
        "plan_id": plan.plan_id,
        "robot": plan.goal.robot_id,
        "urgency": urgency_word(plan.goal.urgency),
        "instruction": plan.goal.instruction,
    }


def _waiting(plan: PlanTrack, now: float) -> dict[str, Any]:
    return {"state": plan.state, "age_s": round(now - plan.arrived, 1)}


def _result(plan: PlanTrack, result: PlanResult, now: float) -> dict[str, Any]:
    return _goal(plan) | {
        "ok": result.error_code is ErrorCode.NONE,
        "code": result.error_code.name,
        "words": result.error_msg,
        "value": result.value,
        "utility": round(result.utility, 3),
        "response_s": round(result.response_time, 3) if result.response_time >= 0 else None,
        "waiting_s": round(result.waiting_time, 2),
        "execution_s": round(result.execution_time, 2),
        "tokens": result.generated_tokens,
        "ago_s": round(now - plan.ended),
    }


def _totals(fleet: FleetState) -> dict[str, Any]:
    counters = fleet.counters
    results = counters.results.items()
    return {
        "plans": counters.results.total(),
        "succeeded": sum(n for (_, code), n in results if code == ErrorCode.NONE.name),
        "utility": round(counters.utility, 2),
        "response_s": round(counters.response.mean, 3),
        "waiting_s": round(counters.waiting.mean, 2),
    }
