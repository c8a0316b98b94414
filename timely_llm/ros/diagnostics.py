"""What the planner says of itself: ``planner_status``, its heartbeat, and ``/diagnostics``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue

from timely_llm.protocols.engine import EngineInfo
from timely_llm.protocols.messages import PlannerStatus, RobotInfo
from timely_llm.ros.engine_thread import Snapshot
from timely_llm.ros.times_keeper import TimesKeeper, words


def planner_status(
    now: float, instance: str, policy: str, info: EngineInfo, snapshot: Snapshot
) -> PlannerStatus:
    """The heartbeat at ``now``, in s."""
    counts = snapshot.counts
    return PlannerStatus(
        stamp=now,
        instance=instance,
        policy=policy,
        model=info.model,
        engine=f"{info.backend} {info.version}",
        pace=info.pace,
        robots=counts.robots,
        waiting=counts.waiting,
        running=counts.running,
        suspended=counts.suspended,
        executing=counts.executing,
        kv_blocks_used=counts.kv_blocks_used,
        kv_blocks_total=counts.kv_blocks_total,
        step_time=snapshot.step_time,
        overhead=snapshot.overhead,
        prompt_tokens_recomputed=counts.recomputed_tokens,
    )


def diagnostics(
    name: str,
    stamp: Time,
    policy: str,
    active: bool,
    info: EngineInfo | None,
    snapshot: Snapshot | None,
    robots: Sequence[RobotInfo],
    times: TimesKeeper,
    others: Sequence[str],
) -> DiagnosticArray:
    """One status for the planner and one for each robot. ``others`` are other planners' ids."""
    planner = DiagnosticStatus(name=f"{name}: planner", hardware_id="timely_llm")
    planner.level = DiagnosticStatus.OK if active else DiagnosticStatus.WARN
    planner.message = "active" if active else "not active"
    facts: dict[str, Any] = {"policy": policy}
    if info is not None:
        facts |= {"engine": f"{info.backend} {info.version}", "model": info.model}
        facts |= {"pace": info.pace or "none"}
    if snapshot is not None:
        facts |= asdict(snapshot.counts)
        facts |= {"step time (ms)": f"{snapshot.step_time * 1e3:.3f}"}
        facts |= {"overhead (ms)": f"{snapshot.overhead * 1e3:.3f}"}
    if times.problem:
        planner.level = DiagnosticStatus.WARN
        facts |= {"learned times": times.problem}
    if others:
        planner.level = DiagnosticStatus.WARN
        facts |= {"other planners": ", ".join(others)}
    planner.values = _values(facts)
    drifts = times.drifts
    statuses = [_robot(name, robot, drifts.get(robot.robot_id, {})) for robot in robots]
    array = DiagnosticArray(status=[planner, *statuses])
    array.header.stamp = stamp
    return array


def _robot(name: str, robot: RobotInfo, drifts: Mapping[str, float]) -> DiagnosticStatus:
    status = DiagnosticStatus(name=f"{name}: robot {robot.robot_id}", hardware_id=robot.robot_id)
    if not robot.alive:
        status.level, status.message = DiagnosticStatus.ERROR, "does not answer"
    elif robot.stopped:
        status.level, status.message = DiagnosticStatus.WARN, "stopped: rearm it"
    elif drifts:
        status.level, status.message = DiagnosticStatus.WARN, f"alive; {words(drifts)}"
    else:
        status.level, status.message = DiagnosticStatus.OK, "alive"
    status.values = _values({"kind": robot.kind, "session": robot.session})
    return status


def _values(facts: dict[str, Any]) -> list[KeyValue]:
    return [KeyValue(key=key, value=str(value)) for key, value in facts.items()]
