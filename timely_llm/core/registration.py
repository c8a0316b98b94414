"""Robots coming and going: sessions, and the fixed prompt of their kind, which is computed now."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from timely_llm.core import events as ev
from timely_llm.core.robots import Refused, Robot
from timely_llm.core.state import PlannerState
from timely_llm.language.skills import SkillSet
from timely_llm.prompts.fixed import FixedPrompt
from timely_llm.prompts.template import TemplateError
from timely_llm.protocols.engine import EngineDead, EngineError
from timely_llm.protocols.messages import ErrorCode


class Registration:
    """Gives robots their sessions, and has their fixed prompts kept."""

    def __init__(self, state: PlannerState) -> None:
        self._state = state

    def register(self, event: ev.RegisterRobot, now: float) -> None:
        """Give the robot a session, or say why not. Plans of its earlier session are over."""
        state = self._state
        try:
            if not state.active:
                raise Refused(ErrorCode.PLANNER_INACTIVE, "the planner is not active")
            skills = state.fleet.skills_of(event.kind, event.skill_set, event.robot_id)
            old = state.fleet.may_register(event.robot_id, event.instance)
            whole = self._fixed_prompt(skills)
            fixed, prefix = self._keep_most(skills, whole)
        except Refused as refusal:
            state.out.append(ev.Registered(event.ticket, 0, refusal.code, refusal.error))
            return
        except Exception as error:  # a skill set that nobody thought of costs its robot alone
            words = f"skill_set cannot be used: {type(error).__name__}: {error}"
            code = ErrorCode.INVALID_SKILL_SET
            state.out.append(ev.Registered(event.ticket, 0, code, words))
            return
        if old is not None:
            self._restarted(old, now)
        robot = state.fleet.add(
            robot_id=event.robot_id,
            skills=skills,
            fixed=fixed,
            prefix=prefix,
            namespace=event.robot_namespace or f"/{event.robot_id}",
            instance=event.instance,
            registered=now,
            last_heard=now,
        )
        state.look_at(state.lost_at(robot))
        shown, there = len(fixed.examples), len(whole.examples)
        words = f"the model has room for {shown} of {there} examples" if shown < there else ""
        state.out.append(ev.Registered(event.ticket, robot.session, error=words))
        if old is not None:
            robot.queue, robot.stopped = old.queue, old.stopped
            self._release_prefix(old)
            another = old.instance != event.instance  # a new process knows of no stop
            if old.stop_sent is not None or (old.stopped and another):
                state.stop_robot(robot, now)
        state.robots_changed()
        state.next(robot, now)

    def unregister(self, event: ev.UnregisterRobot, now: float) -> None:
        """Forget the robot; its goals end, and it has to stop what it does for them."""
        state = self._state
        robot = state.fleet.robots.get(event.robot_id)
        code, error = ErrorCode.NONE, ""
        if robot is None:
            code, error = ErrorCode.UNKNOWN_ROBOT, f"robot_id {event.robot_id!r} is not registered"
        elif event.session not in (0, robot.session):
            code = ErrorCode.INVALID_SESSION
            error = f"session {event.session} of robot {event.robot_id!r} is over"
        else:
            words = f"robot {robot.robot_id!r} was unregistered"
            state.end_all(robot, ErrorCode.ROBOT_LOST, words, now)
            del state.fleet.robots[event.robot_id]
            self._release_prefix(robot)
            state.robots_changed()
        state.out.append(ev.Answered(event.ticket, code, error, (event.robot_id,)))

    def _restarted(self, old: Robot, now: float) -> None:
        """The adapter registers again: whatever its earlier session had, it holds no more."""
        words = f"robot {old.robot_id!r} registered again"
        for request in self._state.requests_of(old):
            if request not in old.queue:
                old.current = None  # the queue waits for the new session
                self._state.end_stopped(request, ErrorCode.ROBOT_RESTARTED, words, now)

    def _fixed_prompt(self, skills: SkillSet) -> FixedPrompt:
        try:
            return self._state.prompts.fixed(skills)
        except TemplateError as error:
            raise Refused(ErrorCode.INVALID_SKILL_SET, str(error)) from error

    def _release_prefix(self, robot: Robot) -> None:
        """Free the fixed prompt of a robot that is gone, unless another one shares it."""
        if all(other.prefix != robot.prefix for other in self._state.fleet):
            self._state.prefixes.drop(robot.prefix)

    def _keep_most(self, skills: SkillSet, fixed: FixedPrompt) -> tuple[FixedPrompt, str]:
        """Keep the fixed prompt with as many of its examples as there is room for; its key."""
        while True:
            try:
                return fixed, self._keep_prefix(skills, fixed)
            except Refused as refusal:
                if refusal.code is not ErrorCode.INVALID_SKILL_SET or not fixed.examples:
                    raise
                fixed = replace(fixed, examples=fixed.examples[:-1])

    def _keep_prefix(self, skills: SkillSet, fixed: FixedPrompt) -> str:
        """Have the fixed prompt computed and kept; robots of one kind share it. Its key."""
        state = self._state
        text = repr((fixed.system, fixed.examples))
        key = "pin-" + hashlib.sha256(text.encode()).hexdigest()[:16]
        if key in state.prefixes:
            return key
        most = state.config.max_tokens
        try:
            state.prefixes.add(fixed.request(key, state.number(), None, most))
        except EngineDead as error:
            raise Refused(ErrorCode.ENGINE_FAILED, str(error)) from error
        except EngineError as error:
            words = f"prompt of kind {skills.kind!r}: {error}"
            raise Refused(ErrorCode.INVALID_SKILL_SET, words) from error
        self._check_room(skills, fixed, key)
        return key

    def _check_room(self, skills: SkillSet, fixed: FixedPrompt, key: str) -> None:
        """Beside all fixed prompts there must be room for every plan that was accepted, and behind
        examples for a plan."""
        state, prefixes = self._state, self._state.prefixes
        tokens, room = prefixes.tokens(key), prefixes.room
        needs = [
            prefixes.need(other.robot.prefix, state.requests[name].prompt_tokens)
            for name, other in state.generating.items()
        ]
        most, context = max([prefixes.need(key, tokens), *needs]), state.engine.info.max_model_len
        crowded = bool(fixed.examples) and tokens + state.config.max_tokens > context
        if room < most or crowded:
            prefixes.drop(key)
            raise Refused(
                ErrorCode.INVALID_SKILL_SET,
                f"prompt of kind {skills.kind!r} has {tokens} tokens: with it, {max(0, room)} of "
                f"{state.engine.info.kv_blocks} KV blocks are left for plans, which need {most}",
            )
