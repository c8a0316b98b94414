"""The engine protocol and its values. Pure: no vLLM, no clock, no thread.

Every engine, real or simulated, is driven step by step: the caller names the generations that
compute in this step, those that are suspended and those that give up their KV blocks. An engine
decides nothing by itself, save who gives up blocks when they run out, and that in the given order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol


class EngineError(Exception):
    """Root of everything an engine refuses or fails with."""


class ModelNotFound(EngineError):
    """The model path or name leads to no model."""


class ModelBroken(EngineError):
    """The model is there but cannot be loaded."""


class UnsupportedVersion(EngineError):
    """The inference library is missing, or is a version this package was not tested with."""


class UnknownArgument(EngineError):
    """A key that neither the engine nor its sampling parameters know."""


class InvalidArgument(EngineError):
    """A known key with a value that the engine refuses."""


class PromptTooLong(EngineError):
    """The prompt and its token limit exceed the model's length or the KV cache."""


class GrammarError(EngineError):
    """The grammar of a request does not compile."""


class DuplicateRequest(EngineError):
    """A request with this id is live already."""


class EngineDead(EngineError):
    """A step failed inside the engine; it cannot be used any more."""


@dataclass(frozen=True, slots=True)
class EngineInfo:
    """What an engine is: ``backend`` is ``simulated``, ``vllm-cpu`` or ``vllm-gpu``.

    ``max_batch`` generations can compute in one step. The KV cache has ``kv_blocks`` blocks of
    ``block_size`` tokens; a prompt with its answer is at most ``max_model_len`` tokens. ``pace``
    names the step times that the engine is slowed down to; empty: its own. A step computes at most
    ``prefill_chunk`` prompt tokens; 0: not known.
    """

    backend: str
    version: str
    model: str
    max_batch: int
    block_size: int
    kv_blocks: int
    max_model_len: int
    pace: str = ""
    prefill_chunk: int = 0

    def blocks_needed(self, request: EngineRequest, prompt: int, pinned: int = 0) -> int:
        """The KV blocks that ``request``, with a prompt of ``prompt`` tokens, can come to need;
        ``PromptTooLong`` where it is more than there is beside ``pinned`` ones."""
        answer = 1 if request.user is None else request.max_tokens
        what = f"request '{request.id}': prompt of {prompt} tokens and max_tokens {answer}"
        if prompt + answer > self.max_model_len:
            raise PromptTooLong(f"{what} exceed max_model_len {self.max_model_len}")
        blocks = -(-(prompt + answer) // self.block_size)
        if blocks > self.kv_blocks - pinned:
            beside = f" beside {pinned} pinned ones" if pinned else ""
            raise PromptTooLong(f"{what} need {blocks} KV blocks of {self.kv_blocks}{beside}")
        return blocks


Turn = tuple[str, str]
"""An example in a prompt: what a user asked, and what the model should answer."""


@dataclass(frozen=True, slots=True)
class EngineRequest:
    """One generation to come.

    ``system`` and the ``examples`` after it are the fixed part of the prompt, ``user`` the goal's
    own words. With ``user`` None the request is a *pin*: it computes the fixed part, then keeps its
    KV blocks until aborted, so that every request with the same fixed part pays only for its own
    words. ``grammar`` (EBNF) or
    None bounds the output, ``max_tokens`` its length. ``number`` is unique and rises with arrival.
    ``priority`` (lower first) counts only with a native priority scheduler; ``seed`` makes
    sampling repeatable where the temperature is not 0.
    """

    id: str
    number: int
    system: str
    user: str | None
    grammar: str | None = None
    max_tokens: int = 512
    priority: int = 0
    seed: int | None = None
    examples: tuple[Turn, ...] = ()

    @property
    def fixed(self) -> str:
        """The text of the fixed part."""
        return "".join((self.system, *(text for turn in self.examples for text in turn)))


@dataclass(frozen=True, slots=True)
class Output:
    """What one generation gave in a step: new text and new tokens since its last output.

    Text may come later than tokens, while a character or a word is incomplete; at the end it is
    whole.
    ``finish`` is None while the generation goes on, ``stop`` at its own end, ``length`` when the
    token limit cut it, ``error`` (with ``error`` saying what) when it failed. ``overruled``: the
    grammar forbade the token that the model would have chosen. ``logprob`` is the natural logarithm
    of that token's probability, before the grammar's mask; None: not known.
    """

    text: str
    tokens: int
    finish: str | None = None
    error: str = ""
    overruled: bool = False
    logprob: float | None = None


@dataclass(frozen=True, slots=True)
class StepResult:
    """What a step gave and what it cost. Maps are by request id.

    ``outputs`` may be of generations that are not in this step's run set: an engine that schedules
    ahead hands out a token one step late. ``duration`` is in s, 0 when nothing was computed.
    ``scheduled`` counts the tokens computed in this step. ``prompt_tokens`` counts those of them
    that lie in a prompt or are computed again; ``recomputed`` those that the same request had
    computed before, after an eviction. ``evicted`` gave up their KV blocks in this step.
    """

    outputs: Mapping[str, Output] = field(default_factory=dict)
    duration: float = 0.0
    scheduled: Mapping[str, int] = field(default_factory=dict)
    prompt_tokens: int = 0
    recomputed_tokens: int = 0
    recomputed: Mapping[str, int] = field(default_factory=dict)
    evicted: tuple[str, ...] = ()
    kv_blocks_used: int = 0
    kv_blocks_total: int = 0


class Engine(Protocol):
    """A language model that advances a chosen set of generations one step at a time."""

    @property
    def info(self) -> EngineInfo:
        """What this engine is; constant."""
        ...

    @property
    def pending(self) -> bool:
        """Whether outputs are on their way: ``step(())`` then hands them out without computing."""
        ...

    def submit(self, request: EngineRequest) -> int:
        """Take a request; it waits until it is in a run set. Returns its prompt's tokens.

        Raises :class:`PromptTooLong`, :class:`GrammarError` or :class:`DuplicateRequest`, and then
        keeps nothing.
        """
        ...

    def abort(self, request_id: str) -> None:
        """End a request, whatever its state, and free its KV blocks; an unknown id is nothing."""
        ...

    def step(
        self,
        run: Sequence[str],
        hold: Sequence[str] = (),
        evict: Sequence[str] = (),
        prefill_budget: int | None = None,
    ) -> StepResult:
        """Compute one step of ``run``, in this order of right of way, and of nothing else.

        ``run`` beyond the engine's batch limit is held for this step, as the most urgent of all.
        ``hold`` keep their KV blocks unless blocks run out: then they lose them in this order,
        least urgent first, and are recomputed when they run again. ``evict`` lose them now.
        Requests named nowhere keep what they have and cannot lose it. ``prefill_budget`` bounds the
        prompt tokens computed in this step (None: the engine's own bound); tokens that extend an
        answer are never delayed by it. Ids that are not live are ignored. With an empty run set
        nothing is computed; what is pending comes out.
        """
        ...

    def close(self) -> None:
        """Free the model and everything else; the engine cannot be used afterwards."""
        ...
