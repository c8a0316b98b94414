"""What policies and predictors are shown of a request. Nothing is changed here."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from timely_llm.core.config import urgency_of
from timely_llm.core.request import Request, State
from timely_llm.estimation.plan_length import PredictorView
from timely_llm.estimation.segment_length import SegmentLength
from timely_llm.policies import View

_EVICTED, _RUNNING = State.EVICTED, State.RUNNING  # looked up once: thousands of views a second
_new = tuple.__new__


def view_of(request: Request, lengths: SegmentLength, pinned: int, network: float) -> View:
    """``request`` as a policy sees it. ``pinned`` tokens of its prompt are in the cache for good;
    ``network`` is the time in s that a segment takes to its robot."""
    goal, state = request.goal, request.state
    begun, written, uncached = request.begun, request.tokens, request.uncached
    in_segment, predicted = request.segment_tokens, request.predicted
    tokens_left, worst_left = lengths.mean - in_segment, lengths.worst - in_segment
    segment = len(request.segments) - request.first_index
    if segment:
        origin = due = request.horizon.end
        utility, mid_segment = request.later, in_segment > 0
    else:
        origin, utility = request.asked, request.utility
        due, mid_segment = origin + utility.ert, begun or in_segment > 0
    kv_tokens = 0
    if begun and state is not _EVICTED:
        kv_tokens = max(1, request.prompt_tokens - pinned + written - uncached)
    # Straight into the tuple, in the order of its fields: half the time of calling the class.
    return _new(
        View,
        (
            request.plan_id,
            request.number,
            segment,
            request.asked,
            origin,
            due,
            utility,
            urgency_of(goal),
            tokens_left if tokens_left > 1.0 else 1.0,
            worst_left if worst_left > 1.0 else 1.0,
            uncached,
            kv_tokens,
            state is _RUNNING,
            mid_segment,
            network,
            goal.ttft,
            goal.tpot,
            written,
            request.first_token,
            max(1.0, predicted - written) if predicted >= 0 else -1.0,
            goal.time_budget,
        ),
    )


def predictor_view_of(request: Request, kind: str) -> PredictorView:
    """``request``, of a robot of ``kind``, as a predictor sees it."""
    goal = request.goal
    return PredictorView(
        plan_id=request.plan_id,
        number=request.number,
        kind=kind,
        instruction=goal.instruction,
        scene=goal.scene,
        text="".join(request.text),
        tokens=request.tokens,
    )


class Views:
    """The views of all plans that are being written, in the order in which they were begun.

    A view is made again only where ``touch`` said that its plan has changed, so that a plan that
    waits costs nothing.
    """

    def __init__(self) -> None:
        self._views: dict[str, View | None] = {}
        self._stale: set[str] = set()

    def add(self, plan_id: str) -> None:
        """A plan's writing begins."""
        self._views[plan_id] = None
        self._stale.add(plan_id)

    def drop(self, plan_id: str) -> None:
        """It is over. One that is not known is nothing."""
        self._views.pop(plan_id, None)

    def touch(self, plan_id: str) -> None:
        """What its view shows has changed, or may have."""
        self._stale.add(plan_id)

    def touch_all(self, plan_ids: Iterable[str] | None = None) -> None:
        """All of these have changed; None: all that there are."""
        self._stale.update(self._views if plan_ids is None else plan_ids)

    def all(self, make: Callable[[str], View]) -> list[View]:
        """Every view; ``make`` makes those again that are out of date."""
        views = self._views
        if self._stale:
            for plan_id in sorted(self._stale & views.keys()):
                views[plan_id] = make(plan_id)
            self._stale.clear()
        return list(filter(None, views.values()))
