"""Whether a goal that comes now can still be of use: the one place that refuses for overload. Pure.

A goal's first segment waits for those of all goals that lose as much a second or more. Where that
alone takes until its utility is zero, an explicit refusal is worth more than a late answer; whether
goals are refused or served late says ``PlannerConfig.overload``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import TYPE_CHECKING

from timely_llm.utility import TimeUtility

if TYPE_CHECKING:
    from timely_llm.fleet import Robot
    from timely_llm.generation import Generation
    from timely_llm.plans import Plans

LATE, REFUSE = "late", "refuse"
WAYS = (LATE, REFUSE)


def check_way(way: str) -> str:
    """``way`` if it is one of ``WAYS``, else ``ValueError`` with the nearest."""
    if way not in WAYS:
        near = get_close_matches(way, WAYS, 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"overload is {way!r}: must be {' or '.join(WAYS)}{hint}")
    return way


def expected_response(
    waiting: Iterable[tuple[Generation, Robot]],
    utility: TimeUtility,
    own_tokens: float,
    latency: Callable[[int, int, int], float],
    max_batch: int,
) -> tuple[float, int]:
    """Time in s until a goal of ``utility``, whose first segment has ``own_tokens``, has that
    segment written, and how many go before it. ``waiting`` are all that are being written.

    Low rather than high: only first segments count, in full batches; of those, the prompts and the
    tokens of goals that lose at least as much a second.
    """
    prompts, tokens, ahead = 0.0, own_tokens, 0
    for plan, robot in waiting:
        if not plan.unsent or plan.utility.alpha > utility.alpha:
            continue
        ahead += 1
        prompts += latency(0, plan.uncached, 0) if plan.uncached else 0.0
        tokens += max(1.0, robot.lengths.mean - plan.segment_tokens)
    batch = min(max_batch, ahead + 1)
    return prompts + max(own_tokens, tokens / batch) * latency(batch, 0, 0), ahead


def reason_to_refuse(plans: Plans, plan: Generation, robot: Robot) -> str:
    """Why ``plan`` is refused, in words; empty where it is not."""
    if plans.config.overload != REFUSE or plans.latency is None:
        return ""
    writing = [(plans.live[plan_id], other.robot) for plan_id, other in plans.writing.items()]
    response, ahead = expected_response(
        writing, plan.utility, robot.lengths.mean, plans.latency, plans.engine.info.max_batch
    )
    response += plans.config.network
    if response < plan.utility.cutoff:
        return ""
    return (
        f"the engine is overloaded: {ahead} goals go first, so an answer is expected after "
        f"{response:.2f} s at the soonest: it is worth nothing after {plan.utility.cutoff:.2f} s"
    )
