"""Small parts for simulations: a robot kind with round times, a prompt, a body, a faulty engine."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from robot_adapters.adapter import Progress
from timely_llm.language.loader import read_skill_set
from timely_llm.language.skills import SkillSet
from timely_llm.protocols.engine import Engine, Output, StepResult
from timely_llm.protocols.messages import SkillCall

# Round numbers, so that logs can be worked out by hand: ``go(s)`` takes s seconds.
WALKER = """\
kind: walker
skills:
  - name: go
    long_name: walk
    description: walk for a time
    arguments:
      - {name: seconds, type: float, unit: s, minimum: 0.1, maximum: 60}
    duration: {argument: seconds}
  - name: see
    long_name: see
    description: whether the object is in view
    arguments:
      - {name: object, type: str, maximum: 20}
    returns: bool
    duration: {constant: 0.001}
  - name: find
    long_name: find
    description: turn until the object is in view
    arguments:
      - {name: object, type: str, maximum: 20}
    returns: bool
    duration: {constant: 1}
  - name: say
    long_name: say
    description: say a text
    arguments:
      - {name: text, type: str, maximum: 40}
    duration: {constant: 0.001}
  - name: rp
    long_name: re_plan
    description: ask for a new plan
    role: replan
    duration: {constant: 0.001}
"""

# The fixed prompt is as long as the kind's description; a goal's own words are its instruction;
# a replan's, with the number of plans that have failed.
PROMPTS = (
    "{% block system %}{{ skills.description }}{% endblock %}"
    "{% block user %}{{ scene }}{{ instruction }}{% endblock %}"
    "{% block replan %}{{ scene }}{{ instruction }}+{{ attempts | length }}{% endblock %}"
)


def walker(description: str = "walker", kind: str = "walker") -> SkillSet:
    text = WALKER.replace("kind: walker", f"kind: {kind}\ndescription: {description}", 1)
    return read_skill_set(text, source=kind)


def tokens_of(plan: str) -> list[str]:
    """A word or a single mark is a token: ``go(2);`` are five."""
    return re.findall(r"\w+|\W", plan)


class TimedBody:
    """A stand-in for a robot: calls take their expected duration; ``values`` by ``name(...)`` as
    called, else True. ``faults`` by the same: the call fails at its end with these words."""

    PARAMETERS = ()

    def __init__(
        self, skills: SkillSet, values: Mapping[str, object], faults: Mapping[str, str]
    ) -> None:
        self.skills, self.values, self.faults = skills, values, faults
        self.done: list[tuple[float, str]] = []  # calls that were begun, and when
        self._call: SkillCall | None = None
        self._started = 0.0
        self._over = False  # the call is; it has been seen so

    def check(self, call: SkillCall) -> str | None:
        return None

    def travel(self, call: SkillCall) -> float:
        return 0.0

    def start(self, call: SkillCall, now: float) -> None:
        self._call, self._started, self._over = call, now, False
        self.done.append((round(now, 6), text_of(call)))

    def poll(self, now: float) -> Progress:
        call = self._call
        if call is None:
            return Progress(True)
        elapsed, duration = now - self._started, max(0.0, call.expected_duration)
        if elapsed < duration - 1e-9:
            return Progress(False, elapsed=elapsed, remaining=duration - elapsed)
        self._over = True
        value = None
        if self.skills[call.name].returns != "none":
            value = self.values.get(text_of(call), True)
        return Progress(True, value, self.faults.get(text_of(call), ""), elapsed)

    def next_poll(self, now: float) -> float | None:
        if self._call is None or self._over:
            return None
        return max(now, self._started + max(0.0, self._call.expected_duration))

    def halt(self, now: float) -> None:
        self._call = None

    def hold(self, now: float) -> None:
        self._call = None

    def resume(self, now: float) -> None: ...

    def observe(self) -> str:
        return ""

    def diagnostics(self) -> Mapping[str, str]:
        return {}

    def close(self, now: float) -> None:
        self._call = None


def text_of(call: SkillCall) -> str:
    return f"{call.name}({','.join(call.evaluated)})"


class FaultyEngine:
    """A stand-in around an engine. ``fault(step)``, called with the number of each step from 1,
    raises what the step shall raise, or returns outputs that come instead of it, or None."""

    def __init__(self, engine: Engine, fault: Callable[[int], Mapping[str, Output] | None]) -> None:
        self._engine, self._fault, self._steps = engine, fault, 0

    def __getattr__(self, name: str) -> object:
        return getattr(self._engine, name)

    def step(
        self,
        run: Sequence[str],
        hold: Sequence[str] = (),
        evict: Sequence[str] = (),
        prefill_budget: int | None = None,
    ) -> StepResult:
        self._steps += 1
        outputs = self._fault(self._steps)
        if outputs:
            return StepResult(outputs, 0.02, dict.fromkeys(outputs, 1))
        return self._engine.step(run, hold, evict, prefill_budget)
