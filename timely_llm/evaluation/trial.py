"""One instruction from its prompt to its verdict: what a model is asked, and what a robot makes of
the plan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from timely_llm.evaluation.flight import call_in_words, fly, outcome, robot
from timely_llm.evaluation.instructions import After, Instruction, Judged
from timely_llm.evaluation.outcome import Outcome, Step, Verdict, judge
from timely_llm.evaluation.score import Result
from timely_llm.evaluation.writing import Task, Written
from timely_llm.language.naming import in_words, renamed
from timely_llm.language.parser import PlanError
from timely_llm.language.skills import SkillSet
from timely_llm.prompts.history import Attempt, Done
from timely_llm.prompts.template import PromptTemplate
from timely_llm.protocols.messages import ErrorCode

Row = dict[str, Any]


def task_of(asked: Instruction, skills: SkillSet, template: PromptTemplate) -> Task:
    """What the model is asked; without a scene the robot looks around in its kind's own world."""
    scene = asked.scene or robot(skills, "")[0].observe()
    after = asked.after if isinstance(asked, Judged) else None
    attempts = () if after is None else (_attempt(after, template.named(skills)),)
    return Task(skills, scene, asked.instruction, attempts)


def _attempt(after: After, skills: SkillSet) -> Attempt:
    """The failure in the names of the prompt."""
    done = tuple(Done(renamed(call, skills)) for call in after.done)
    plan, failed = renamed(after.plan, skills), renamed(after.failed, skills)
    return Attempt(plan, done, failed, after.failure)


def try_out(asked: Instruction, skills: SkillSet, plan: Written) -> tuple[Row, Result | None]:
    """What a robot makes of the segments that it would have got, and the verdict where the
    instruction says what it asks for."""
    unseen = asked.unseen if isinstance(asked, Judged) else {}
    adapter, sees = robot(skills, asked.scene, unseen)
    flight = fly(plan.segments, plan.whole, skills, adapter)
    code, error = plan.code, plan.error
    if flight.code is not None:  # it ended before the fault came
        code, error = flight.code, flight.error
    try:
        worded = renamed(plan.text, in_words(skills))
    except PlanError:  # no text of the language
        worded = plan.text
    row = {
        "kind": asked.kind,
        "scene": asked.scene,
        "instruction": asked.instruction,
        "world": "scene" if sees else "own",
        "text": plan.text,
        "plan": worded,
        "code": code.name,
        "error": error,
        "calls": [call_in_words(call, skills) for call in flight.calls],
        "value": flight.value,
        "end": dict(zip(("x", "y", "z", "yaw"), flight.end.values, strict=True)),
        "tokens": plan.tokens,
        "logprob": plan.logprob,
    }
    if not isinstance(asked, Judged):
        return row, None
    verdict = judge(asked.expect, asked.says, outcome(flight, skills, code))
    result = Result(
        asked.half,
        asked.family,
        asked.kind,
        verdict,
        _if_doubted(asked.expect),
        any(skills[call.name].timed for call in flight.calls),
        plan.logprob,
        plan.tokens,
        plan.prompt_tokens,
        plan.first_segment,
    )
    row |= {"half": asked.half, "family": asked.family, "verdict": verdict}
    return row, result


def _if_doubted(expected: Sequence[Sequence[Step]]) -> Verdict:
    """The verdict where the plan is refused before anything moves."""
    return judge(expected, "", Outcome((), frozenset(), (), ErrorCode.REFUSED))
