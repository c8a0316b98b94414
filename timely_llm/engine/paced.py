"""An engine slowed down to another machine's step times. Pure: clock and sleep are passed in.

A fast small model on a laptop then contends as a large one on an edge GPU does. ``EngineInfo.pace``
names the step times, so that no figure is taken for the machine's own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from timely_llm.estimation.step_time import StepLatency
from timely_llm.protocols.engine import Engine, EngineRequest, StepResult


class PacedEngine:
    """``engine``, each step of which lasts at least what ``latency`` says of it.

    The rest of a step is slept away; a step that computed nothing is not prolonged, and one that
    took longer is as it is. ``clock`` gives s and never runs backwards, ``sleep`` takes s; ``pace``
    is the name of the step times.
    """

    def __init__(
        self,
        engine: Engine,
        latency: StepLatency,
        clock: Callable[[], float],
        sleep: Callable[[float], None],
        pace: str = "custom",
    ) -> None:
        self._engine, self._latency = engine, latency
        self._clock, self._sleep = clock, sleep
        self.info = replace(engine.info, pace=pace)
        self._context: dict[str, int] = {}

    @property
    def pending(self) -> bool:
        return self._engine.pending

    def submit(self, request: EngineRequest) -> int:
        tokens = self._engine.submit(request)
        self._context[request.id] = tokens
        return tokens

    def abort(self, request_id: str) -> None:
        self._context.pop(request_id, None)
        self._engine.abort(request_id)

    def close(self) -> None:
        self._engine.close()

    def step(
        self,
        run: Sequence[str],
        hold: Sequence[str] = (),
        evict: Sequence[str] = (),
        prefill_budget: int | None = None,
    ) -> StepResult:
        begun = self._clock()
        step = self._engine.step(run, hold, evict, prefill_budget)
        least = self._least(step)
        self._follow(step)
        if not step.scheduled:
            return step
        rest = least - (self._clock() - begun)
        if rest > 0:
            self._sleep(rest)
        return replace(step, duration=max(step.duration, self._clock() - begun))

    def _least(self, step: StepResult) -> float:
        """What the step takes at this pace, in s. Whatever is no prompt token extends an answer."""
        decoding = sum(step.scheduled.values()) - step.prompt_tokens
        context = sum(
            self._context.get(name, 0) for name, count in step.scheduled.items() if count == 1
        )
        return self._latency(decoding, step.prompt_tokens, context)

    def _follow(self, step: StepResult) -> None:
        """Contexts grow by what came out, and end with their generations."""
        for name, output in step.outputs.items():
            if output.finish is not None:
                self._context.pop(name, None)
            elif name in self._context:
                self._context[name] += output.tokens
