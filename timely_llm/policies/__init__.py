"""What a policy sees, what it says, and the policies by name.

A policy is a plain function ``choose(now, views, state) -> Decision``: it does no I/O, reads no
clock, keeps nothing, and every order it makes ends in the request's own number.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from timely_llm.protocols.utility import TimeUtility
from timely_llm.validation.names import hint


class View(NamedTuple):
    """One generation as a policy sees it. Times in s on the planner's clock.

    ``due`` is when its next segment should be at the robot: arrival + ERT for the first one,
    the robot's horizon for a continuation. ``origin`` is where its waiting counts from: the
    arrival, or the horizon. ``utility`` is TUF_0 for the first segment, TUF_1 for the others.
    """

    id: str
    number: int
    segment: int
    arrival: float
    origin: float
    due: float
    utility: TimeUtility
    urgency: int
    tokens_left: float  # expected until the segment ends
    worst_tokens_left: float
    uncached: int  # prompt tokens to compute first; 0 where the KV blocks are kept
    kv_tokens: int  # held now; 0 where nothing is
    running: bool  # was in the last run set
    mid_segment: bool  # part of the segment is written
    network: float  # s until a segment is at the robot
    ttft: float = 0.0  # target: s from the arrival to the first token; 0: none
    tpot: float = 0.0  # target: s for each further token; 0: none
    written: int = 0  # tokens of the plan so far
    first_token: float = -1.0  # when it came; below 0: not yet
    predicted: float = -1.0  # tokens to the end of the plan; below 0: the policy does not ask


class EngineState(NamedTuple):
    """The engine as a policy sees it. ``latency`` predicts a step's time in s."""

    max_batch: int
    latency: Callable[[int, int, int], float]
    kv_tokens_free: int
    kv_tokens_total: int
    steps: int = 0  # of the engine so far


@dataclass(frozen=True, slots=True)
class Decision:
    """Who computes in the next step, in order; who keeps its KV blocks meanwhile, the first of them
    giving them up first if the engine runs out; who gives them up now.

    ``valid_until`` is a promise: up to that time (s) ``run`` would be chosen again, in the same
    order, as long as no event comes, no segment ends, no prediction is due and at least
    ``kv_floor`` KV tokens are free. A simulator may then take those steps together.
    """

    run: tuple[str, ...] = ()
    hold: tuple[str, ...] = ()
    evict: tuple[str, ...] = ()
    prefill_budget: int | None = None  # prompt tokens of this step; None: the engine's own limit
    wake_at: float | None = None  # s, with an empty run set: choose again then
    valid_until: float | None = None  # s; None: for one step
    kv_floor: int = 0


Choose = Callable[[float, Sequence[View], EngineState], Decision]


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy by name. ``streams``: segments are sent as they appear, else with the whole plan.
    ``native``: the engine's own scheduler decides and ``choose`` only mirrors it, the scheduler
    being one by priority where ``priority`` is set. ``predicts``: it wants ``View.predicted``."""

    name: str
    choose: Choose
    streams: bool = True
    native: bool = False
    priority: bool = False
    predicts: bool = False


_POLICIES: dict[str, Policy] = {}


class UnknownPolicy(ValueError):
    """No policy of that name."""


def register(
    name: str,
    *,
    streams: bool = True,
    native: bool = False,
    priority: bool = False,
    predicts: bool = False,
) -> Callable[[Choose], Choose]:
    """Decorator: make ``choose`` known as ``name``."""

    def add(choose: Choose) -> Choose:
        _POLICIES[name] = Policy(name, choose, streams, native, priority, predicts)
        return choose

    return add


def names() -> list[str]:
    """All policies, sorted."""
    _load()
    return sorted(_POLICIES)


def get(name: str) -> Policy:
    """The policy ``name``, or ``UnknownPolicy`` with the nearest known one."""
    _load()
    if name not in _POLICIES:
        raise UnknownPolicy(f"policy {name!r} is unknown{hint(name, _POLICIES)}")
    return _POLICIES[name]


def _load() -> None:
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
