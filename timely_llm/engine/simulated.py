"""An engine that computes nothing: scripted answers, modelled step times, exact KV accounting.

Pure and deterministic; time is only reported (``StepResult.duration``), never waited for. Work per
step grows with the run set alone, so that a discrete-event simulation of thousands of waiting
goals stays fast.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from timely_llm.engine.config import Script
from timely_llm.engine.simulated_cache import Kept, KvCache
from timely_llm.estimation.step_time import StepTimes
from timely_llm.protocols.engine import (
    DuplicateRequest,
    EngineInfo,
    EngineRequest,
    Output,
    StepResult,
)


@dataclass(frozen=True, slots=True)
class Forwarded:
    """Steps taken together, each of which gave every request of the run set one token.

    ``durations`` (s) one a step, ``texts`` by request id; afterwards the KV cache has
    ``kv_blocks_used`` in use, and ``can_continue`` says that one more step would have been
    possible.
    """

    durations: tuple[float, ...] = ()
    texts: Mapping[str, str] = field(default_factory=dict)
    kv_blocks_used: int = 0
    can_continue: bool = False


def quarter_of_characters(text: str) -> int:
    """Tokens of a text where nothing better is known: one for four characters, at least one."""
    return max(1, -(-len(text) // 4))


@dataclass(slots=True)
class _Live(Kept):
    """A live request."""

    request: EngineRequest
    script: Sequence[str]
    generated: int = 0


@dataclass(slots=True)
class _Step:
    """One step in the making. ``spare`` is what of ``run`` exceeds the batch limit."""

    run: Sequence[str]
    hold: Sequence[str]
    decodes: list[_Live] = field(default_factory=list)
    prompts: list[_Live] = field(default_factory=list)
    spare: list[str] = field(default_factory=list)
    outputs: dict[str, Output] = field(default_factory=dict)
    scheduled: dict[str, int] = field(default_factory=dict)
    recomputed: dict[str, int] = field(default_factory=dict)
    evicted: list[str] = field(default_factory=list)
    ended: list[_Live] = field(default_factory=list)
    decoding: int = 0
    context: int = 0
    prefill: int = 0
    _victims: list[str] | None = None

    def victims(self) -> list[str]:
        """Who may lose blocks, the first to lose them at the end; made when blocks run out."""
        if self._victims is None:
            order = [live.request.id for live in self.decodes + self.prompts] + self.spare
            running = set(order)
            self._victims = order + [name for name in reversed(self.hold) if name not in running]
        return self._victims


class SimulatedEngine:
    """Answers by ``script``, takes ``latency`` for each step, keeps KV blocks as vLLM does.

    ``script`` gives the texts of the tokens of a request's answer. Its end costs one token more,
    the end token, unless ``end_token`` is False. ``count_tokens`` measures prompts, ``own_tokens``
    a request's own part where that is known otherwise. ``max_batch`` sequences and
    ``prefill_chunk`` prompt tokens fit in one step. Whole blocks of a fixed prompt are shared by
    all requests with the same ``system``, from the moment one has computed them until the last
    holder loses them. With ``lag`` the tokens of a step come out with the step after it, as those
    of an engine that schedules ahead do.
    """

    def __init__(
        self,
        script: Script,
        latency: StepTimes,
        *,
        max_batch: int = 8,
        kv_blocks: int = 4096,
        block_size: int = 32,
        max_model_len: int = 8192,
        prefill_chunk: int = 2048,
        count_tokens: Callable[[str], int] = quarter_of_characters,
        own_tokens: Callable[[EngineRequest], int] | None = None,
        end_token: bool = True,
        lag: bool = False,
        model: str = "scripted",
    ) -> None:
        sizes = {
            "max_batch": max_batch,
            "kv_blocks": kv_blocks,
            "block_size": block_size,
            "max_model_len": max_model_len,
            "prefill_chunk": prefill_chunk,
        }
        for name, value in sizes.items():
            if value < 1:
                raise ValueError(f"{name} is {value}: must be at least 1")
        self.info = EngineInfo(
            backend="simulated",
            version=latency.source,
            model=model,
            max_batch=max_batch,
            block_size=block_size,
            kv_blocks=kv_blocks,
            max_model_len=max_model_len,
        )
        self._script = script
        self._latency = latency
        self._chunk = prefill_chunk
        self._count = count_tokens
        self._own = own_tokens or (lambda request: count_tokens(request.user or ""))
        self._end_token = end_token
        self._lag = lag
        self._live: dict[str, _Live] = {}
        self._cache = KvCache(kv_blocks, block_size)
        self._in_flight: dict[str, Output] = {}

    @property
    def pending(self) -> bool:
        return bool(self._in_flight)

    def close(self) -> None:
        for name in list(self._live):
            self.abort(name)
        self._in_flight = {}

    # Requests

    def submit(self, request: EngineRequest) -> int:
        if request.id in self._live:
            raise DuplicateRequest(f"request '{request.id}' is live already")
        system, prefix = self._cache.prefix(request.fixed, self._count)
        prompt = system if request.user is None else system + self._own(request)
        self.info.blocks_needed(request, prompt)
        script = () if request.user is None else self._script(request)
        self._live[request.id] = _Live(request, script, prompt=prompt, prefix=prefix)
        return prompt

    def abort(self, request_id: str) -> None:
        live = self._live.pop(request_id, None)
        self._in_flight.pop(request_id, None)
        if live is not None:
            self._cache.give_up(live)

    def _allocate(self, live: _Live, end: int, step: _Step) -> bool:
        """Blocks for the tokens before ``end``, at the cost of whoever has less right to them."""
        cache, own = self._cache, live.request.id
        need = cache.lacks(live, end)
        while cache.used + need > cache.total:
            victims = step.victims()
            if own not in victims:
                return False
            name = victims.pop()
            if name == own:
                return False
            if name not in step.scheduled:
                self._evict(name, step)
        cache.take(live, need)
        return True

    def _evict(self, name: str, step: _Step) -> None:
        live = self._live.get(name)
        if live is not None and self._cache.give_up(live):
            step.evicted.append(name)

    # The step

    def step(
        self,
        run: Sequence[str],
        hold: Sequence[str] = (),
        evict: Sequence[str] = (),
        prefill_budget: int | None = None,
    ) -> StepResult:
        step = _Step(run, hold)
        for name in evict:
            self._evict(name, step)
        if run:
            self._compute(step, prefill_budget)
        outputs = step.outputs
        if self._lag:
            outputs, self._in_flight = self._in_flight, outputs
        computed = step.decoding or step.prefill
        return StepResult(
            outputs=outputs,
            duration=self._latency(step.decoding, step.prefill, step.context) if computed else 0.0,
            scheduled=step.scheduled,
            prompt_tokens=step.prefill,
            recomputed_tokens=sum(step.recomputed.values()),
            recomputed=step.recomputed,
            evicted=tuple(step.evicted),
            kv_blocks_used=self._cache.used,
            kv_blocks_total=self.info.kv_blocks,
        )

    def fast_forward(
        self, run: Sequence[str], steps: int, now: float, until: float, kv_floor: int = 0
    ) -> Forwarded:
        """Up to ``steps`` steps of ``run`` together, as ``step`` would take them one by one, the
        last one being the first that ends at ``until`` or later (s).

        None are taken unless all of ``run`` decode and go on after them, and no more than leave
        ``kv_floor`` KV tokens free.
        """
        lives = [self._live[name] for name in run if name in self._live]
        if not lives or len(lives) < len(run) or len(lives) > self.info.max_batch or self._lag:
            return Forwarded()
        for live in lives:
            if not live.room or not live.decodes:
                return Forwarded()
            steps = min(steps, self._before_end(live))
        floor = -(-kv_floor // self.info.block_size)
        while steps > 0 and self._lacking(lives, steps, floor):
            steps //= 2
        if steps < 1:
            return Forwarded()
        context = sum(live.computed + 1 for live in lives)
        durations: list[float] = []
        while len(durations) < steps and now < until:
            duration = self._latency(len(lives), 0, context)
            durations.append(duration)
            now += duration
            context += len(lives)
        texts = {live.request.id: self._pass(live, len(durations)) for live in lives}
        return Forwarded(
            tuple(durations), texts, self._cache.used, not self._lacking(lives, 1, floor)
        )

    def _before_end(self, live: _Live) -> int:
        """Tokens of its answer before the one that ends it."""
        length = len(live.script) + self._end_token
        return min(length, live.request.max_tokens) - live.generated - 1

    def _lacking(self, lives: Sequence[_Live], tokens: int, floor: int) -> bool:
        """Whether ``tokens`` more of each leave fewer than ``floor`` blocks free."""
        need = sum(self._cache.lacks(live, live.computed + tokens) for live in lives)
        return self._cache.used + need > self._cache.total - floor

    def _pass(self, live: _Live, tokens: int) -> str:
        """Write ``tokens`` more of an answer; their text."""
        first = live.generated
        live.generated += tokens
        live.computed = live.highest = live.computed + tokens
        self._cache.take(live, self._cache.lacks(live, live.computed))
        return "".join(live.script[first : live.generated])

    def _compute(self, step: _Step, budget: int | None) -> None:
        """Decodes first: no prompt beside them may take their place; then prompts, by budget."""
        for name in step.run:
            live = self._live.get(name)
            if live is None or (live.generated and live.request.user is None):
                continue
            if len(step.decodes) + len(step.prompts) == self.info.max_batch:
                step.spare.append(name)
            elif live.decodes:
                step.decodes.append(live)
            else:
                step.prompts.append(live)
        for live in step.decodes:
            self._decode(live, step)
        left = self._chunk if budget is None else min(budget, self._chunk)
        for live in step.prompts:
            if left <= 0:
                break
            tokens = self._prefill(live, left, step)
            if tokens == 0:  # it finds no room: nobody behind it takes what it waits for
                break
            left -= tokens
        for live in step.ended:  # that a generation ends is known when the step is over
            del self._live[live.request.id]
            self._cache.give_up(live)

    def _decode(self, live: _Live, step: _Step) -> None:
        end = live.computed + 1
        if not live.room or (end > live.room and not self._allocate(live, end, step)):
            return
        step.scheduled[live.request.id] = 1
        step.decoding += 1
        step.context += end
        live.computed = live.highest = end
        self._sample(live, step)

    def _prefill(self, live: _Live, limit: int, step: _Step) -> int:
        """Compute up to ``limit`` tokens of a prompt, or of what was lost; how many they were."""
        if live.computed == 0:
            self._cache.start(live)
        known = live.prompt + live.generated
        start, end = live.computed, min(known, live.computed + limit)
        if end > live.room and not self._allocate(live, end, step):
            return 0
        name = live.request.id
        step.scheduled[name] = end - start
        step.prefill += min(end, max(live.prompt, live.highest)) - start
        if (again := min(end, live.highest) - start) > 0:
            step.recomputed[name] = again
        live.computed = end
        live.highest = max(live.highest, end)
        self._cache.share(live)
        if end == known:
            self._sample(live, step)
        return end - start

    def _sample(self, live: _Live, step: _Step) -> None:
        """The next token of the script; the last one ends the request."""
        text = live.script[live.generated] if live.generated < len(live.script) else ""
        live.generated += 1
        finish = None
        if live.request.user is not None:
            if live.generated >= len(live.script) + self._end_token:
                finish = "stop"
            elif live.generated >= live.request.max_tokens:
                finish = "length"
        step.outputs[live.request.id] = Output(text, 1, finish)
        if finish is not None:
            step.ended.append(live)
