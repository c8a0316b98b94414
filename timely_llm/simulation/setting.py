"""How a trace is replayed, what a replay gives, which kinds of robots there are. Values only."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from timely_llm.estimation.learned_times import Times
from timely_llm.estimation.plan_length import Noisy, Oracle, Predictor
from timely_llm.estimation.presets import EngineModel
from timely_llm.language.skills import SkillSet
from timely_llm.protocols.messages import PlanEvent
from timely_llm.simulation.outcomes import Outcome
from timely_llm.simulation.trace import Task, Trace
from timely_llm.simulation.workloads.tasks import skill_sets
from timely_llm.simulation.workloads.text_tasks import TEXT_KINDS


@dataclass(frozen=True, slots=True)
class Setting:
    """How a trace is replayed. Times in s.

    ``network`` is one way. With ``refusals`` goals may be refused at overload. ``plan_overhead`` is
    what segmenting costs the engine over a whole plan, in equal parts at the ends of its segments;
    ``decision_overhead`` is added whenever a goal has come or a segment has ended since the last
    decision. Neither is charged to an engine's native scheduler. ``kv_tokens`` and ``skills`` (by
    kind) replace the engine's and the package's own. With ``timeline`` the run keeps all plan
    events. ``cut`` is the end of the run, after the last arrival. ``predictor`` makes what a policy
    asks for predictions; by default past lengths. ``oracle`` and ``noisy`` of this module fit.
    Without ``together`` steps are taken one by one, which gives the same and takes longer.
    ``times`` makes what the planner knows of durations; by default it goes by the skill sets.
    """

    policy: str
    engine: EngineModel
    max_batch: int = 8
    network: float = 0.008
    refusals: bool = False
    plan_overhead: float = 0.0
    decision_overhead: float = 0.0
    kv_tokens: int | None = None
    skills: Mapping[str, SkillSet] | None = None
    timeline: bool = False
    cut: float = 60.0
    predictor: Callable[[Trace], Predictor] | None = None
    together: bool = True
    times: Callable[[], Times] | None = None

    def __post_init__(self) -> None:
        for name in ("network", "plan_overhead", "decision_overhead", "cut"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0):
                raise ValueError(f"{name} is {value} s: must be finite and at least 0")


@dataclass(frozen=True, slots=True)
class Run:
    """What a replay gave: ``outcomes`` in order of arrival, when it was cut (s), how many engine
    steps there were and how long they took together (s)."""

    outcomes: tuple[Outcome, ...]
    cut_at: float
    steps: int
    busy_s: float
    timeline: tuple[PlanEvent, ...] = field(default=(), repr=False)


def oracle(trace: Trace) -> Predictor:
    """Knows the length of every answer of ``trace``."""
    return Oracle(lambda sight: len(trace.arrivals[int(sight.plan_id)].task.tokens))


def noisy(trace: Trace) -> Predictor:
    """The oracle with ELIS's error."""
    return Noisy(oracle(trace))


class UnknownKind(ValueError):
    """A task for a kind of robot without a skill set."""


def kind_of(task: Task, skills: Mapping[str, SkillSet]) -> SkillSet:
    """Of the robot that ``task`` is for: in ``skills``, a text kind, or one of the package's own.
    ``UnknownKind`` names the task and the kinds that are known."""
    for kinds in (skills, TEXT_KINDS, skill_sets()):
        if task.kind in kinds:
            return kinds[task.kind]
    known = ", ".join(sorted({*skills, *TEXT_KINDS, *skill_sets()}))
    raise UnknownKind(f"task {task.name!r} is for a {task.kind!r}: unknown (known: {known})")
