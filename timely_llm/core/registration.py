"""Robots coming and going: sessions, and the fixed prompt of their kind, which is computed now."""

from __future__ import annotations

import hashlib

from timely_llm.core import events as ev
from timely_llm.core import reports
from timely_llm.core.robots import Refused, Robot
from timely_llm.core.state import Plans
from timely_llm.language.grammar import plan_grammar
from timely_llm.language.skills import SkillSet
from timely_llm.prompts.template import TemplateError
from timely_llm.protocols.engine import EngineDead, EngineError, EngineRequest
from timely_llm.protocols.messages import ErrorCode, SegmentCommand


def register_robot(plans: Plans, event: ev.RegisterRobot, now: float) -> None:
    """Give the robot a session, or say why not. Plans of its earlier session are over."""
    try:
        if not plans.active:
            raise Refused(ErrorCode.PLANNER_INACTIVE, "the planner is not active")
        skills = plans.fleet.skills_of(event.kind, event.skill_set, event.robot_id)
        old = plans.fleet.may_register(event.robot_id, event.instance)
        system = _fixed_prompt(plans, skills)
        prefix = _prefix(plans, skills, system)
    except Refused as refusal:
        plans.out.append(ev.Registered(event.ticket, 0, refusal.code, refusal.error))
        return
    if old is not None:
        _restarted(plans, old, now)
    robot = plans.fleet.add(
        robot_id=event.robot_id,
        skills=skills,
        grammar=plan_grammar(skills),
        system=system,
        prefix=prefix,
        namespace=event.robot_namespace or f"/{event.robot_id}",
        instance=event.instance,
        registered=now,
        last_heard=now,
    )
    plans.look_at(reports.lost_at(plans, robot))
    plans.out.append(ev.Registered(event.ticket, robot.session))
    if old is not None:
        robot.queue, robot.stopped = old.queue, old.stopped
        _release_prefix(plans, old)
        another = old.instance != event.instance  # a new process knows of no stop
        if old.stop_sent is not None or (old.stopped and another):
            reports.send_stop(plans, robot, now)
    plans.robots_changed()
    plans.next(robot, now)


def unregister_robot(plans: Plans, event: ev.UnregisterRobot, now: float) -> None:
    """Forget the robot; its goals end, and it is told to stop what it does for them."""
    robot = plans.fleet.robots.get(event.robot_id)
    if robot is None:
        code, error = ErrorCode.UNKNOWN_ROBOT, f"robot_id {event.robot_id!r} is not registered"
    elif event.session not in (0, robot.session):
        code = ErrorCode.INVALID_SESSION
        error = f"session {event.session} of robot {event.robot_id!r} is over"
    else:
        code, error = ErrorCode.NONE, ""
        words = f"robot {robot.robot_id!r} was unregistered"
        for plan in list(robot.queue):
            plans.end(plan, ErrorCode.ROBOT_LOST, words, now)
        for plan in [p for p in plans.live.values() if p.goal.robot_id == robot.robot_id]:
            if plan.segments:
                plans.command(robot, SegmentCommand.CANCEL, plan.plan_id, now)
            plans.end(plan, plan.code or ErrorCode.ROBOT_LOST, plan.error or words, now)
        del plans.fleet.robots[event.robot_id]
        _release_prefix(plans, robot)
        plans.robots_changed()
    plans.out.append(ev.Answered(event.ticket, code, error, (event.robot_id,)))


def _restarted(plans: Plans, old: Robot, now: float) -> None:
    """The adapter registers again: whatever its earlier session was told, it holds no more."""
    words = f"robot {old.robot_id!r} registered again"
    for plan in [p for p in plans.live.values() if p.goal.robot_id == old.robot_id]:
        if plan not in old.queue:
            old.current = None  # the queue waits for the new session
            plans.end(plan, plan.code or ErrorCode.ROBOT_RESTARTED, plan.error or words, now)


def _fixed_prompt(plans: Plans, skills: SkillSet) -> str:
    try:
        return plans.prompts.system(skills)
    except TemplateError as error:
        raise Refused(ErrorCode.INVALID_SKILL_SET, str(error)) from error


def _release_prefix(plans: Plans, robot: Robot) -> None:
    """Free the fixed prompt of a robot that is gone, unless another one shares it."""
    if all(other.prefix != robot.prefix for other in plans.fleet):
        plans.prefixes.drop(robot.prefix)


def _prefix(plans: Plans, skills: SkillSet, system: str) -> str:
    """Have the fixed prompt computed and kept; robots of one kind share it."""
    key = "pin-" + hashlib.sha256(system.encode()).hexdigest()[:16]
    if key not in plans.prefixes:
        request = EngineRequest(
            key, plans.number(), system, None, plan_grammar(skills), plans.config.max_tokens
        )
        try:
            plans.prefixes.add(request)
        except EngineDead as error:
            raise Refused(ErrorCode.ENGINE_FAILED, str(error)) from error
        except EngineError as error:
            raise Refused(
                ErrorCode.INVALID_SKILL_SET, f"prompt of kind {skills.kind!r}: {error}"
            ) from error
        _check_room(plans, skills, key)
    return key


def _check_room(plans: Plans, skills: SkillSet, key: str) -> None:
    """Beside all fixed prompts there must be room for every plan that was accepted."""
    prefixes = plans.prefixes
    tokens, room = prefixes.tokens(key), prefixes.room
    needs = [
        prefixes.need(writing.robot.prefix, plans.live[plan_id].prompt_tokens)
        for plan_id, writing in plans.writing.items()
    ]
    most = max([prefixes.need(key, tokens), *needs])
    if room < most:
        prefixes.drop(key)
        raise Refused(
            ErrorCode.INVALID_SKILL_SET,
            f"prompt of kind {skills.kind!r} has {tokens} tokens: with it, {max(0, room)} of "
            f"{plans.engine.info.kv_blocks} KV blocks are left for plans, which need {most}",
        )
