"""Drives an engine through a grid of step shapes and measures them. Pure: engine and clock are
given.

Shapes are visited in turn, in another order each round, so that whatever disturbs the machine for a
while disturbs them all. Decoding sequences live on between visits, suspended; prompts are new.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from timely_llm.bench.latency_fit import Sample, StepShape
from timely_llm.protocols.engine import Engine, EngineError, EngineRequest, Output, StepResult

BATCHES = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128)
PREFILLS = (32, 128, 512, 1024)
CONTEXTS = (64, 512, 2048)

BURST = 4  # measured steps of a visit
SHARE = 0.8  # of the KV cache that the sequences may fill
FIXED = 192  # tokens, about, of the prompt that new prompts share: it is cached
GROWTH = 0.25  # of its context that a sequence may grow by, and
MARGIN = 64  # tokens, before another one takes its place
_VOCABULARY = (
    "find the apple on a table then go left turn right take photo of red box near door if you see "
    "person say hello wait land pick place move up down forward back cup book chair window green"
)


class ProfileError(ValueError):
    """A grid that the engine cannot be measured on."""


def grid(
    engine: Engine,
    prefill_chunk: int,
    batches: Sequence[int] = (),
    prefills: Sequence[int] = (),
    contexts: Sequence[int] = (),
) -> tuple[StepShape, ...]:
    """The shapes to measure on ``engine``, a step of which computes ``prefill_chunk`` prompt tokens
    at most. What is not given is chosen to fit.

    All batches decode over all contexts for which there is KV memory; all prompts are computed
    alone, and with the smallest, a middle and the largest batch that leaves them room, over a
    middle context. ``ProfileError`` names what does not fit.
    """
    info = engine.info
    longest = info.max_model_len
    batches = tuple(batches) or tuple(b for b in BATCHES if b <= info.max_batch)
    contexts = tuple(contexts) or tuple(c for c in CONTEXTS if _most(c) <= longest)
    limit = min(prefill_chunk, longest - FIXED - MARGIN)
    prefills = tuple(prefills) or tuple(p for p in PREFILLS if p <= limit)
    _check("batch", batches, info.max_batch, "the engine's max_batch")
    _check("context", contexts, longest - MARGIN, "the model's length less what it grows by")
    _check("prefill", prefills, limit, "the prompt tokens of a step, and the model's length")
    for context in contexts:
        if _most(context) > longest:
            raise ProfileError(
                f"a context of {context} tokens grows to {_most(context)}: the model's length is "
                f"{longest}"
            )
    room = int(SHARE * info.kv_blocks * info.block_size) - max(prefills) - FIXED
    widest = _widest(batches, contexts, room, info.block_size)
    shapes = [StepShape(b, 0, c) for c in contexts for b in batches if b <= widest[c]]
    shapes += [StepShape(0, p, 0) for p in prefills]
    middle = contexts[len(contexts) // 2]
    mixed = [b for b in batches if b <= min(widest[middle], info.max_batch - 1)]
    chosen = sorted({mixed[0], mixed[len(mixed) // 2], mixed[-1]}) if mixed else []
    shapes += [StepShape(b, p, middle) for b in chosen for p in prefills if b + p <= limit]
    return tuple(shapes)


def _check(name: str, values: Sequence[int], most: int, what: str) -> None:
    if not values:
        raise ProfileError(f"no {name} fits: at most {most} ({what})")
    for value in values:
        if not 1 <= value <= most:
            raise ProfileError(f"{name} {value}: must be 1 to {most} ({what})")


def _most(context: int) -> int:
    """Tokens that a sequence of this context can come to have, its prompt being 10% too long."""
    return int(1.1 * context) + _room(context)


def _room(context: int) -> int:
    """Tokens that a sequence can write. It is replaced ``MARGIN`` tokens before."""
    return int(GROWTH * context) + 2 * MARGIN


def _widest(
    batches: Sequence[int], contexts: Sequence[int], room: int, block: int
) -> dict[int, int]:
    """The largest batch over each context: short ones first, each with its share of the memory."""
    widest, left = {}, room
    for i, context in enumerate(sorted(contexts)):
        tokens = -(-_most(context) // block) * block
        share = left // (len(contexts) - i)
        fitting = [b for b in batches if b * tokens <= share]
        if not fitting:
            raise ProfileError(
                f"a context of {context} tokens: the KV cache has no room for it beside the others "
                f"({room} tokens in all); give fewer or shorter contexts, or more memory"
            )
        widest[context] = max(fitting)
        left -= widest[context] * tokens
    return widest


@dataclass(slots=True)
class _Sequence:
    """A decoding sequence: its id, the tokens that it has, and how many are enough."""

    id: str
    tokens: int
    enough: int


class Rig:
    """Measures steps on an engine that runs exactly what it is asked to.

    ``grammar`` bounds what is written, as it does in a planner; it must have no end. Use it once,
    with an engine that ignores end tokens and does nothing else meanwhile.
    """

    def __init__(self, engine: Engine, grammar: str | None = None, seed: int = 0) -> None:
        self._engine, self._grammar, self._rng = engine, grammar, random.Random(seed)
        self._pools: dict[int, list[_Sequence]] = {}  # by context
        self._count = 0
        self._fixed, self._words_per_token, self._own = "", 0.5, 0

    def measure(
        self,
        shapes: Sequence[StepShape],
        steps: int,
        going_on: Callable[[int, int], bool] = lambda done, rounds: True,
    ) -> list[Sample]:
        """At least ``steps`` measured steps of each shape, in rounds of ``BURST``, in the order in
        which they were made. Before each round ``going_on(done, rounds)`` may end it; the first
        rounds, two of which any fit needs, are made anyway. One more round in front is not kept.
        """
        if steps < 2 * BURST:
            raise ProfileError(f"steps is {steps}: must be at least {2 * BURST}")
        self._prepare(shapes)
        samples: list[Sample] = []
        rounds = -(-steps // BURST)
        for visit in range(-1, rounds):
            if not going_on(visit + 1, rounds + 1) and visit >= 2:
                break
            for shape in self._rng.sample(shapes, len(shapes)):
                made = self._visit(shape, visit)
                if visit >= 0:
                    samples += made
        self._end()
        return samples

    # Sequences and prompts.

    def _prepare(self, shapes: Sequence[StepShape]) -> None:
        text = self._text(100)
        tokens = self._submit("", text, 1)
        self._words_per_token = 100.0 / max(1, tokens)
        self._engine.abort(self._name())
        self._fixed = self._text(round(FIXED * self._words_per_token))
        prefix = EngineRequest("pin", 0, self._fixed, None)
        rest = self._engine.submit(prefix) % self._engine.info.block_size
        self._own = round(rest * self._words_per_token)  # in no whole block: never cached
        self._first_output("pin")
        for shape in shapes:
            pool = self._pools.setdefault(shape.context, [])
            while len(pool) < shape.batch:
                pool.append(self._sequence(shape.context))

    def _end(self) -> None:
        for pool in self._pools.values():
            for sequence in pool:
                self._engine.abort(sequence.id)
        self._engine.abort("pin")
        while self._engine.pending:
            self._engine.step(())

    def _sequence(self, context: int) -> _Sequence:
        """A new sequence of about so many tokens, its prompt computed."""
        words = max(1, round(context * self._words_per_token))
        tokens = self._submit("", self._text(words), _room(context))
        output = self._first_output(self._name())
        if output.finish is not None:
            raise ProfileError(f"a generation ended at once: {output.error or 'no text'}")
        enough = tokens + _room(context) - MARGIN
        return _Sequence(self._name(), tokens + output.tokens, enough)

    def _first_output(self, name: str) -> Output:
        """Of a request that runs alone, its prompt computed."""
        for _ in range(10_000):
            output = self._engine.step([name]).outputs.get(name)
            if output is not None:
                return output
        raise ProfileError("the engine computes no prompt")

    def _submit(self, system: str, user: str, room: int) -> int:
        self._count += 1
        request = EngineRequest(
            self._name(), self._count, system, user, self._grammar, max_tokens=max(2, room)
        )
        try:
            return self._engine.submit(request)
        except EngineError as error:
            raise ProfileError(f"the engine refuses a prompt of the grid: {error}") from error

    def _name(self) -> str:
        return f"s{self._count}"

    def _text(self, words: int) -> str:
        return " ".join(self._rng.choices(_VOCABULARY.split(), k=max(1, words)))

    def _batch(self, shape: StepShape) -> list[_Sequence]:
        """The shortest sequences of the shape's context; those that grew too long are replaced."""
        pool = self._pools[shape.context]
        for i, sequence in enumerate(pool):
            if sequence.tokens > sequence.enough:
                self._engine.abort(sequence.id)
                pool[i] = self._sequence(shape.context)
        pool.sort(key=lambda sequence: sequence.tokens)
        return pool[: shape.batch]

    # Steps.

    def _visit(self, shape: StepShape, visit: int) -> list[Sample]:
        batch = self._batch(shape) if shape.batch else []
        if batch:
            self._step(batch)  # the batch changes: not measured
        samples = []
        for _ in range(BURST):
            kv = sum(sequence.tokens for sequence in batch)
            if shape.prefill:
                prompt, seconds = self._prompt_step(shape, batch)
            else:
                prompt, seconds = 0, self._step(batch).duration
            samples.append(Sample(shape, visit, len(batch), prompt, kv, seconds))
        return samples

    def _prompt_step(self, shape: StepShape, batch: list[_Sequence]) -> tuple[int, float]:
        """A new prompt in a step with ``batch``: its computed tokens, and the step's time in s."""
        words = round(shape.prefill * self._words_per_token) - self._own
        self._submit(self._fixed, self._text(max(1, words)), MARGIN)
        name = self._name()
        step = self._step(batch, name)
        seconds = step.duration
        if self._engine.pending:  # it computes a step ahead: this step's time shows in the next one
            seconds = self._step(batch).duration
        self._engine.abort(name)
        if not step.prompt_tokens:
            raise ProfileError("the engine computed no prompt token in a step with a new prompt")
        return step.prompt_tokens, seconds

    def _step(self, batch: Sequence[_Sequence], *more: str) -> StepResult:
        step = self._engine.step([*(sequence.id for sequence in batch), *more])
        for sequence in batch:
            output = step.outputs.get(sequence.id)
            if output is None:
                continue
            if output.finish is not None:
                raise ProfileError(
                    f"a generation ended ({output.error or output.finish}): nothing can be "
                    "measured with this grammar"
                )
            sequence.tokens += output.tokens
        return step
