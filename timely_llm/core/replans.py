"""Plans that fail on their robot, or ask for another one: whether the goal is planned again, and
what the next prompt tells.

A replan keeps the goal's id, its utility and its robot. It is a new first segment to the engine and
to every policy, due as a goal that comes at the moment of the failure; its segments go on counting
where the old plan's ended, so that nothing can be done twice.
"""

from __future__ import annotations

from timely_llm.core.config import replans_of
from timely_llm.core.request import Request, State
from timely_llm.core.robots import Robot
from timely_llm.language.skills import SkillSet, value_literal
from timely_llm.prompts.history import Attempt, Done
from timely_llm.protocols.messages import Execution, OnFailure, SkillCall

ASKED = "the plan asked for another one"
_LONGEST = 200  # characters of a robot's words, or of a value, in a prompt


def may_replan(robot: Robot, request: Request, asked: bool) -> bool:
    """Whether the goal may be planned again: after a failure only on the goal's own wish
    (``on_failure``); what the plan itself ``asked`` for is not up to that.

    Never while it is being stopped, or while another goal waits to take its robot.
    """
    wanted = asked or request.goal.on_failure is OnFailure.REPLAN
    return (
        wanted
        and len(request.attempts) < replans_of(request.goal)
        and request.state not in (State.STOPPING, State.ENDED)
        and robot.current is request
        and not robot.stopped
    )


def done(report: Execution, skills: SkillSet) -> Done:
    """The call of a report that it succeeded."""
    value = report.value[:_LONGEST] if report.has_value else None
    return Done(as_written(report.call, skills), value)


def as_written(call: SkillCall, skills: SkillSet) -> str:
    """The call as a plan writes it, with the values that were used."""
    values, name = list(call.evaluated or call.arguments), call.name
    if name in skills:
        name = skills[name].name
    if call.evaluated and name in skills:
        kinds = [argument.type for argument in skills[name].arguments]
        values = [
            value_literal(value) if kind == "str" else value
            for value, kind in zip(values, kinds, strict=False)
        ]
    return f"{name}({','.join(values)})"


def attempt_of(request: Request, skills: SkillSet, report: Execution) -> Attempt:
    """The plan that failed on the robot, as the next prompt tells of it."""
    failed = as_written(report.call, skills) if report.call.name else ""
    words = " ".join(report.error.removeprefix(f"{report.call.name}: ").split())
    return _attempt(request, "".join(request.segments[request.first_index :]), failed, words)


def refused_attempt(request: Request) -> Attempt:
    """The plan that the check refused, as the next prompt tells of it."""
    return _attempt(request, "".join(request.text), "", request.refused)


def _attempt(request: Request, plan: str, failed: str, words: str) -> Attempt:
    return Attempt(
        plan=plan,
        done=tuple(request.history),
        failed=failed,
        failure=words[:_LONGEST].rstrip(" .") or ASKED,
        written="".join(request.text),
        prompt_tokens=request.prompt_tokens,
        tokens=request.tokens,
    )
