"""Plans as an engine writes them, held to the grammar and checked while they grow, as a planner
does it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from timely_llm.core.planner import OVERRULED
from timely_llm.language.parser import PlanError
from timely_llm.language.segmenter import PlanSegmenter
from timely_llm.language.skills import SkillSet
from timely_llm.prompts.fixed import FixedPrompt
from timely_llm.prompts.template import PromptTemplate
from timely_llm.protocols.engine import Engine, Output, PromptTooLong
from timely_llm.protocols.messages import ErrorCode


@dataclass(slots=True)
class Written:
    """A plan, or what there is of it: the ``segments`` that a robot would have got, with ``whole``
    all of it. ``code`` and ``error`` are why it went no further."""

    text: str = ""
    segments: list[str] = field(default_factory=list)
    whole: bool = False
    tokens: int = 0
    code: ErrorCode = ErrorCode.NONE
    error: str = ""


@dataclass(frozen=True, slots=True)
class Task:
    """What one plan is to be written for; the scene is never empty."""

    skills: SkillSet
    scene: str
    instruction: str


def write(
    engine: Engine, template: PromptTemplate, tasks: Sequence[Task], max_tokens: int
) -> Iterator[tuple[int, Written]]:
    """Each plan with the number of its task, as soon as it is written."""
    shared: dict[str, FixedPrompt] = {}
    waiting = deque(enumerate(tasks))
    live: dict[str, tuple[int, Written, PlanSegmenter]] = {}
    while waiting or live:
        while waiting and len(live) < engine.info.max_batch:
            number, task = waiting.popleft()
            kind = task.skills.kind
            if kind not in shared:
                shared[kind] = template.fixed(task.skills)
            user = template.user(task.skills, task.scene, task.instruction)
            try:
                engine.submit(shared[kind].request(str(number), number, user, max_tokens))
            except PromptTooLong as error:
                yield number, Written(code=ErrorCode.INVALID_GOAL, error=str(error))
                continue
            live[str(number)] = number, Written(), PlanSegmenter(task.skills)
        for name, output in engine.step(tuple(live)).outputs.items():
            number, plan, segmenter = live[name]
            if not _grow(plan, segmenter, output, max_tokens):
                del live[name]
                engine.abort(name)
                yield number, plan


def _grow(plan: Written, segmenter: PlanSegmenter, output: Output, max_tokens: int) -> bool:
    """Take what a step wrote; whether there is more to come."""
    plan.text += output.text
    plan.tokens += output.tokens
    if output.finish == "error":
        plan.code, plan.error = ErrorCode.ENGINE_FAILED, output.error
    elif output.finish == "length":
        words = f"the plan reached the limit of {max_tokens} tokens"
        plan.code, plan.error = ErrorCode.PLAN_TRUNCATED, words
    elif output.overruled and segmenter.inside:
        plan.code, plan.error = ErrorCode.INVALID_PLAN, OVERRULED
    else:
        try:
            for segment in segmenter.feed(output.text, output.finish == "stop"):
                plan.segments.append(segment.text)
                plan.whole = segment.last
        except PlanError as error:
            plan.code, plan.error = ErrorCode.INVALID_PLAN, str(error)
    return plan.code is ErrorCode.NONE and output.finish is None
