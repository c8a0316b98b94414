"""Plans as an engine writes them, held to the grammar and checked while they grow, as a planner
does it. Pure, but for the engine."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from timely_llm.core.outputs import Reader
from timely_llm.language.segmenter import PlanSegmenter
from timely_llm.language.skills import SkillSet
from timely_llm.prompts.fixed import FixedPrompt
from timely_llm.prompts.history import Attempt
from timely_llm.prompts.template import PromptTemplate
from timely_llm.protocols.engine import Engine, Output, PromptTooLong
from timely_llm.protocols.messages import ErrorCode


@dataclass(slots=True)
class Written:
    """A plan, or what there is of it: the ``segments`` that a robot would have got, with ``whole``
    all of it. ``code`` and ``error`` are why it went no further. ``first_segment`` is in s since
    the request (None: there is none); ``logprob`` the mean of its tokens before anything moved,
    or of all where nothing did."""

    text: str = ""
    segments: list[str] = field(default_factory=list)
    whole: bool = False
    tokens: int = 0
    prompt_tokens: int = 0
    first_segment: float | None = None
    logprob: float | None = None
    code: ErrorCode = ErrorCode.NONE
    error: str = ""


@dataclass(frozen=True, slots=True)
class Task:
    """What one plan is to be written for; the scene is never empty. ``attempts`` are plans for it
    that have failed."""

    skills: SkillSet
    scene: str
    instruction: str
    attempts: tuple[Attempt, ...] = ()


@dataclass(slots=True)
class _Live:
    number: int
    reader: Reader
    begun: float
    plan: Written


class Writer:
    """Has an engine write plans, timed by ``clock`` (s). ``grammar``: whether it is held to the
    plan language; ``min_logprob`` is a planner's."""

    def __init__(
        self,
        engine: Engine,
        template: PromptTemplate,
        max_tokens: int,
        clock: Callable[[], float],
        grammar: bool = True,
        min_logprob: float | None = None,
    ) -> None:
        self._engine, self._template, self._clock = engine, template, clock
        self._max_tokens, self._grammar, self._min_logprob = max_tokens, grammar, min_logprob
        self._fixed: dict[str, FixedPrompt] = {}

    def write(self, tasks: Sequence[Task]) -> Iterator[tuple[int, Written]]:
        """Each plan with the number of its task, as soon as it is written."""
        waiting = deque(enumerate(tasks))
        live: dict[str, _Live] = {}
        while waiting or live:
            while waiting and len(live) < self._engine.info.max_batch:
                number, task = waiting.popleft()
                begun = self._clock()
                try:
                    prompt_tokens = self._submit(number, task)
                except PromptTooLong as error:
                    yield number, Written(code=ErrorCode.INVALID_GOAL, error=str(error))
                    continue
                plan = Written(prompt_tokens=prompt_tokens)
                live[str(number)] = _Live(number, self._reader(task.skills), begun, plan)
            for name, output in self._engine.step(tuple(live)).outputs.items():
                if not self._grow(live[name], output):
                    self._engine.abort(name)
                    each = live.pop(name)
                    yield each.number, each.plan

    def _reader(self, skills: SkillSet) -> Reader:
        return Reader(PlanSegmenter(skills), skills, self._max_tokens, self._min_logprob)

    def _submit(self, number: int, task: Task) -> int:
        kind = task.skills.kind
        if kind not in self._fixed:
            fixed = self._template.fixed(task.skills)
            self._fixed[kind] = fixed if self._grammar else replace(fixed, grammar="")
        own = (task.skills, task.scene, task.instruction)
        if task.attempts:
            user = self._template.replan(*own, task.attempts)
        else:
            user = self._template.user(*own)
        request = self._fixed[kind].request(str(number), number, user, self._max_tokens)
        return self._engine.submit(request)

    def _grow(self, live: _Live, output: Output) -> bool:
        """Take what a step wrote; whether there is more to come."""
        plan = live.plan
        plan.text += output.text
        plan.tokens += output.tokens
        moved = live.reader.moves
        taken = live.reader.take(output)
        if not moved:
            plan.logprob = live.reader.mean_logprob
        if taken.segments and not plan.segments:
            plan.first_segment = self._clock() - live.begun
        plan.segments += [segment.text for segment in taken.segments]
        plan.whole, plan.code, plan.error = taken.ended, taken.code, taken.error
        return plan.code is ErrorCode.NONE and output.finish is None
