"""What a policy sees and what it says: views, the engine's state, the decision.

A policy is a plain function ``choose(now, views, state) -> Decision``: it does no I/O, reads no
clock, keeps nothing, and every order it makes ends in the request's own number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from timely_llm.estimation.step_time import Latency
from timely_llm.protocols.utility import TimeUtility


class View(NamedTuple):
    """One request as a policy sees it. Times in s on the planner's clock.

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
    time_budget: float = 0.0  # target: s from the arrival to the whole plan; 0: none


class EngineState(NamedTuple):
    """The engine as a policy sees it. ``latency`` predicts a step's time in s."""

    max_batch: int
    latency: Latency
    kv_tokens_free: int
    kv_tokens_total: int
    steps: int = 0  # of the engine so far


@dataclass(frozen=True, slots=True)
class Decision:
    """Requests by id: those that compute in the next step, in order (``run``); those that keep
    their KV blocks meanwhile, the first to lose them first where the engine runs out (``hold``);
    those that lose them now (``evict``).

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
"""``choose(now, views, state)``: who computes in the next step."""
