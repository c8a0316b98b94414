"""What the engine tests share: requests, and ways to drive an engine to the end."""

from __future__ import annotations

import random
from collections.abc import Iterable

from timely_llm.protocols.engine import Engine, EngineRequest, StepResult

SYSTEM = "You plan for a robot. The scene lists what the robot sees now. " * 8


def filler(label: str, tokens: int) -> str:
    """A text of so many tokens, another one for each label: letters that no token joins."""
    return "".join(random.Random(label).choices("ZQXJKWVU", k=tokens))


def request(
    name: str, user: str | None = "find the cat", system: str = SYSTEM, **fields
) -> EngineRequest:
    """A request of 40 tokens, unless ``fields`` say otherwise."""
    return EngineRequest(name, 0, system, user, **({"max_tokens": 40} | fields))


class Texts:
    """Texts and ends as they come out of steps."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.tokens: dict[str, int] = {}
        self.ends: dict[str, str] = {}

    def take(self, step: StepResult) -> StepResult:
        for name, output in step.outputs.items():
            self.texts[name] = self.texts.get(name, "") + output.text
            self.tokens[name] = self.tokens.get(name, 0) + output.tokens
            if output.finish:
                self.ends[name] = output.finish
        return step

    def left(self, names: Iterable[str]) -> list[str]:
        return [name for name in names if name not in self.ends]


def prefill_pin(engine: Engine, name: str = "pin", system: str = SYSTEM, **fields) -> int:
    """Submit a pin and compute it; returns its prompt's tokens."""
    tokens = engine.submit(request(name, None, system, **fields))
    for _ in range(1000):
        if name in engine.step([name]).outputs:
            return tokens
    raise AssertionError("the pin was never computed")


def run_to_end(engine: Engine, names: Iterable[str], limit: int = 2000) -> Texts:
    """Run all of ``names`` in every step until they have ended."""
    seen = Texts()
    names = list(names)
    for _ in range(limit):
        left = seen.left(names)
        if not left:
            return seen
        seen.take(engine.step(left))
    raise AssertionError(f"not finished: {seen.left(names)}")


def alone(engine: Engine, given: EngineRequest) -> str:
    """The text of a request that has the engine to itself."""
    engine.submit(given)
    return run_to_end(engine, [given.id]).texts[given.id]
