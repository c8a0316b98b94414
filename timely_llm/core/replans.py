"""Plans that fail on their robot, or ask for another one: the same goal is planned again.

A replan keeps the goal's id, its utility and its robot. It is a new first segment to the engine and
to every policy, due as a goal that arrives at the moment of the failure; its segments go on
counting where the old plan's ended, so that nothing can be done twice.
"""

from __future__ import annotations

from timely_llm.core.goals import replans_of
from timely_llm.core.request import Request, State
from timely_llm.core.robots import Robot
from timely_llm.core.state import Plans
from timely_llm.language.skills import SkillSet
from timely_llm.prompts.history import Attempt, Done
from timely_llm.protocols.messages import ErrorCode, Execution, OnFailure, PlanEventType, SkillCall

ASKED = "the plan asked for another one"
_MOST_DONE = 40  # calls of one plan that a prompt tells of, the last ones
_LONGEST = 200  # characters of a robot's words, or of a value, in a prompt


def may_replan(plans: Plans, robot: Robot, plan: Request, asked: bool) -> bool:
    """Whether the goal may be planned again: a failure is only on the goal's own wish
    (``on_failure``); what the plan itself ``asked`` for is not up to that.

    Never while it is being stopped, or while another goal waits to take its robot.
    """
    wanted = asked or plan.goal.on_failure is OnFailure.REPLAN
    return (
        wanted
        and len(plan.attempts) < replans_of(plan.goal)
        and plan.state not in (State.STOPPING, State.ENDED)
        and robot.current is plan
        and not robot.stopped
        and plans.active
    )


def replan(
    plans: Plans, robot: Robot, plan: Request, report: Execution, error: str, now: float
) -> None:
    """Have another plan written, from what ``report`` tells; ``error`` is the end of this one."""
    result = plan.result(ErrorCode.SKILL_FAILED, error, now)
    attempt = _attempt(plan, robot.skills, report)
    plans.leave_engine(plan)
    plan.replan(attempt, plans.number(), now)
    plans.emit(plan, PlanEventType.REPLANNED, now, segment=plan.first_index, result=result)
    code, reason = plans.submit(plan, robot, now)
    if code is ErrorCode.ENGINE_FAILED:
        plans.end(plan, code, reason, now)
    elif code is not ErrorCode.NONE:
        words = f"{error}; it cannot be planned again: {reason}"
        plans.end(plan, ErrorCode.SKILL_FAILED, words, now)


def done(report: Execution, skills: SkillSet) -> Done:
    """The call of a report that it succeeded."""
    value = report.value[:_LONGEST] if report.has_value else None
    return Done(as_written(report.call, skills), value)


def as_written(call: SkillCall, skills: SkillSet) -> str:
    """The call as a plan writes it, with the values that were used."""
    values = call.evaluated or call.arguments
    if call.evaluated and call.name in skills:
        kinds = [argument.type for argument in skills[call.name].arguments]
        values = [
            f"'{value}'" if kind == "str" else value
            for value, kind in zip(values, kinds, strict=False)
        ]
    return f"{call.name}({','.join(values)})"


def _attempt(plan: Request, skills: SkillSet, report: Execution) -> Attempt:
    failed = as_written(report.call, skills) if report.call.name else ""
    words = " ".join(report.error.removeprefix(f"{report.call.name}: ").split())
    return Attempt(
        plan="".join(plan.segments[plan.first_index :]),
        done=tuple(plan.history[-_MOST_DONE:]),
        failed=failed,
        failure=words[:_LONGEST].rstrip(" .") or ASKED,
        written="".join(plan.text),
        prompt_tokens=plan.prompt_tokens,
        tokens=plan.tokens,
    )
