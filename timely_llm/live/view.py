"""What is shown of a board, as plain JSON values: the same in ``timely-llm top`` and on the page.

Pure: a function of the board and the time in s. Keys that end in ``_s`` are s.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from timely_llm.live.board import Entry, FleetBoard, RobotTrack
from timely_llm.live.tally import urgency_word
from timely_llm.protocols.messages import ErrorCode

SILENT = 3.0  # s without a heartbeat, after which the planner is shown as silent
SHOWN_RESULTS = 20
SHOWN_QUEUE = 50
SHOWN_SEGMENTS = 40  # of a plan in the fleet's view; its detail has all

View = Mapping[str, Any]


def view(board: FleetBoard, now: float) -> dict[str, Any]:
    """The whole picture at ``now``."""
    queue = list(board.queue())
    results = list(board.over)[: -SHOWN_RESULTS - 1 : -1]
    return {
        "planner": _planner(board, now),
        "engine": _engine(board, now),
        "robots": [_robot(board, track, now) for track in board.robots.values()],
        "queue": [_goal(entry, now) for entry in queue[:SHOWN_QUEUE]],
        "queue_length": len(queue),
        "results": [_result(entry, now) for entry in results],
        "totals": _totals(board),
    }


def detail(board: FleetBoard, plan_id: str, now: float) -> dict[str, Any] | None:
    """All of one plan, or None where it is not known any more."""
    entry = board.find(plan_id)
    if entry is None:
        return None
    shown = _plan(entry, now, len(entry.plan.segments))
    if entry.plan.result is not None:
        shown["result"] = _result(entry, now)
    return shown | {"robot": entry.plan.goal.robot_id, "scene": entry.plan.goal.scene}


def _planner(board: FleetBoard, now: float) -> dict[str, Any]:
    status, silent = board.status, board.silent(now)
    if status is None or silent is None:
        return {"state": "unheard"}
    return {
        "state": "silent" if silent > SILENT else "running",
        "silent_s": round(silent, 1) if silent > SILENT else 0.0,
        "policy": status.policy,
        "model": status.model.rstrip("/").rpartition("/")[2],
        "engine": status.engine,
        "pace": status.pace,
    }


def _engine(board: FleetBoard, now: float) -> dict[str, Any]:
    status = board.status
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
        "tokens_per_s": round(board.tokens_per_second(now), 1),
        "recomputed": status.prompt_tokens_recomputed,
    }


def _robot(board: FleetBoard, track: RobotTrack, now: float) -> dict[str, Any]:
    info = track.info
    entry = board.of(info.robot_id)
    goals = [e for e in board.queue() if e.plan.goal.robot_id == info.robot_id and e is not entry]
    return {
        "id": info.robot_id,
        "kind": info.kind,
        "state": robot_state(info.alive, info.stopped),
        "horizon_s": None if track.dry_at is None else round(max(0.0, track.dry_at - now), 1),
        "error": track.error,
        "plan": None if entry is None else _plan(entry, now, SHOWN_SEGMENTS),
        "queued": len(goals),
    }


def robot_state(alive: bool, stopped: bool) -> str:
    """One word for the state of a robot: the worst that is so."""
    return "silent" if not alive else "stopped" if stopped else "alive"


def _plan(entry: Entry, now: float, limit: int) -> dict[str, Any]:
    plan = entry.plan
    skipped = max(0, len(plan.segments) - limit)
    waiting = plan.waiting(now) if plan.result is None else plan.result.waiting_time
    segments = [
        {"index": index, "text": text, "state": _segment_state(entry, index)}
        for index, text in enumerate(plan.segments)
        if index >= skipped
    ]
    return {
        "plan_id": plan.plan_id,
        "urgency": urgency_word(plan.goal.urgency),
        "instruction": plan.goal.instruction,
        "state": state_word(entry),
        "over": plan.over,
        "segments": segments,
        "skipped": skipped,
        "failures": list(entry.failures),
        "call": plan.call,
        "waiting_s": round(waiting, 2),
        "waits": plan.waits_since is not None,
        "tokens": entry.tokens,
    }


def _segment_state(entry: Entry, index: int) -> str:
    plan = entry.plan
    if index in entry.gone:
        return entry.gone[index]
    if index == plan.segment and plan.call:
        return "running"
    failed = plan.result is not None and plan.result.error_code is ErrorCode.SKILL_FAILED
    if index == plan.segment and failed:
        return "failed"
    if index <= plan.segment or (plan.result is not None and not plan.result.error_code):
        return "done"
    return "sent"


def state_word(entry: Entry) -> str:
    """What a plan is doing, or how it ended, in a word."""
    plan = entry.plan
    if plan.result is not None:
        return "done" if not plan.result.error_code else plan.result.error_code.name.lower()
    return plan.state


def _goal(entry: Entry, now: float) -> dict[str, Any]:
    goal = entry.plan.goal
    return {
        "plan_id": entry.plan.plan_id,
        "robot": goal.robot_id,
        "urgency": urgency_word(goal.urgency),
        "instruction": goal.instruction,
        "state": entry.plan.state,
        "age_s": round(now - entry.arrived, 1),
    }


def _result(entry: Entry, now: float) -> dict[str, Any]:
    plan, result = entry.plan, entry.plan.result
    return {
        "plan_id": plan.plan_id,
        "robot": plan.goal.robot_id,
        "urgency": urgency_word(plan.goal.urgency),
        "instruction": plan.goal.instruction,
        "ok": result.error_code is ErrorCode.NONE,
        "code": result.error_code.name,
        "words": result.error_msg,
        "value": result.value,
        "utility": round(result.utility, 3),
        "response_s": round(result.response_time, 3) if result.response_time >= 0 else None,
        "waiting_s": round(result.waiting_time, 2),
        "execution_s": round(result.execution_time, 2),
        "tokens": result.generated_tokens,
        "ago_s": round(now - entry.ended),
    }


def _totals(board: FleetBoard) -> dict[str, Any]:
    tally = board.tally
    answered = sum(tally.response.counts)
    return {
        "plans": tally.plans,
        "succeeded": tally.succeeded,
        "utility": round(tally.utility, 2),
        "response_s": round(tally.response.total / answered, 3) if answered else None,
        "waiting_s": round(tally.waiting.total / answered, 2) if answered else None,
    }
