"""Plans on the bare engine, and prompts for them: what several benchmarks share."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from timely_llm.engine.config import EngineConfig
from timely_llm.engine.factory import build
from timely_llm.language.loader import load_skill_set
from timely_llm.language.segmenter import Detector, plan_detector
from timely_llm.paths import share
from timely_llm.prompts.template import PromptTemplate
from timely_llm.protocols.engine import Engine, Output

MAX_TOKENS = 2048  # the planner's default
_numbers = itertools.count(1)


class Bench:
    """A model on vLLM with a robot kind's fixed prompt pinned, as the planner has it."""

    def __init__(self, engine: Engine, model: str, kind: str) -> None:
        self.engine = engine
        self.skills = load_skill_set(share("config", "skills", f"{kind}.yaml"))
        self.prompts = PromptTemplate.resolve("", model)
        self.fixed = self.prompts.fixed(self.skills)
        self._prefix()

    def _prefix(self) -> None:
        name = self.submit(None)
        while not self.engine.step([name]).outputs:
            pass

    def submit(self, instruction: str | None, scene: str = "[]", **fields: int) -> str:
        """Hand a request to the engine; None: the fixed prompt alone. Returns its id."""
        number = next(_numbers)
        user = None if instruction is None else self.prompts.user(self.skills, scene, instruction)
        request = self.fixed.request(f"r{number}", number, user, MAX_TOKENS, **fields)
        self.engine.submit(request)
        return request.id

    def detector(self) -> Detector:
        return plan_detector(self.skills)

    def outputs(self, name: str) -> Iterator[Output]:
        """The outputs of a generation that runs alone, step by step, to its end."""
        while True:
            output = self.engine.step([name]).outputs.get(name)
            if output is not None:
                yield output
                if output.finish is not None:
                    return

    def first_segment(self, instruction: str) -> float:
        """s from handing over the request until its first segment is complete."""
        begun = time.perf_counter()
        name, detector = self.submit(instruction), self.detector()
        for output in self.outputs(name):
            if detector.feed(output.text) or output.finish is not None:
                break
        elapsed = time.perf_counter() - begun
        self.engine.abort(name)
        while self.engine.pending:
            self.engine.step(())
        return elapsed


def bundled_model() -> str:
    return str(share("models", "tiny_planner"))


@contextmanager
def running(model: str | Path, kind: str, max_batch: int = 8) -> Iterator[Bench]:
    """A bench on a new vLLM engine, closed at the end."""
    engine = build(EngineConfig(str(model), max_batch))
    try:
        yield Bench(engine, str(model), kind)
    finally:
        engine.close()
