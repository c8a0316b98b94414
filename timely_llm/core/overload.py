"""Whether a goal that comes now can still be of use: the one place that refuses for overload. Pure.

A goal's first segment waits for those of all goals that lose as much a second or more. Where that
alone takes until its utility is zero, an explicit refusal is worth more than a late answer; whether
goals are refused or served late says ``PlannerConfig.overload``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from timely_llm.core.request import Request
from timely_llm.core.robots import Robot
from timely_llm.protocols.utility import TimeUtility


def expected_response(
    waiting: Iterable[tuple[Request, Robot]],
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


def reason_to_refuse(
    waiting: Iterable[tuple[Request, Robot]],
    plan: Request,
    robot: Robot,
    latency: Callable[[int, int, int], float],
    max_batch: int,
    network: float,
) -> str:
    """Why ``plan`` is refused, in words; empty where it is not. Arguments as above; a segment takes
    ``network`` s to its robot."""
    response, ahead = expected_response(
        waiting, plan.utility, robot.lengths.mean, latency, max_batch
    )
    response += network
    if response < plan.utility.cutoff:
        return ""
    return (
        f"the engine is overloaded: {ahead} goals go first, so an answer is expected after "
        f"{response:.2f} s at the soonest: it is worth nothing after {plan.utility.cutoff:.2f} s"
    )
