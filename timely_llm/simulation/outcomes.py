"""How one goal of a run ended, and how its utility is counted. Pure values.

Every goal that arrived counts. One without a first segment, for whatever reason, scores its utility
at the cut.
"""

from __future__ import annotations

from dataclasses import dataclass

from timely_llm.core.request import Request
from timely_llm.protocols.messages import ErrorCode, PlanResult
from timely_llm.protocols.utility import Urgency
from timely_llm.simulation.trace import Arrival, Task

ROUNDING = 1e-9  # s
REFUSALS = (ErrorCode.OVERLOADED, ErrorCode.ROBOT_BUSY, ErrorCode.OUTRANKED)


@dataclass(frozen=True, slots=True)
class Outcome:
    """One goal. Times in s, those with ``_s`` counted from the start of its clock: ``arrival``, or
    when its robot was free for it if that was later.

    ``response_s`` is until the first segment is at the robot, ``first_token_s`` until the first
    token is written, ``tpot_s`` the mean time of the tokens behind it. ``waiting_s`` is the time in
    which the robot did not execute, up to the plan's end or to the cut. ``completed_at`` is on the
    trace's clock. What did not happen before the cut is None. ``met`` says whether the response
    came within the expected response time, ``slo_met`` whether the goal's own targets were kept:
    its time budget alone where it has one (SLICE, section VI-A: real-time tasks), else TTFT and
    TPOT; without any, ``met``.
    """

    arrival: float
    urgency: Urgency
    response_s: float | None
    waiting_s: float
    execution_s: float
    completed_at: float | None
    utility: float
    refused: bool = False
    error_code: ErrorCode = ErrorCode.NONE
    first_token_s: float | None = None
    tpot_s: float | None = None
    tokens: int = 0
    met: bool = False
    slo_met: bool = False


def outcome_of(
    arrival: Arrival,
    request: Request | None,
    result: PlanResult | None,
    first_at: float | None,
    cut_at: float,
) -> Outcome:
    """``request`` as it was left, its ``result`` if it ended, and when its first segment was at the
    robot."""
    task = arrival.task
    started = arrival.at if request is None else max(arrival.at, request.arrival)
    if first_at is not None and first_at > cut_at:
        first_at = None
    response = None if first_at is None else first_at - started
    utility = task.utility((cut_at - started) if response is None else response)
    code = ErrorCode.NONE if result is None else result.error_code
    executed, tokens, first, tpot = 0.0, 0, None, None
    if request is not None:
        executed, tokens = request.execution_time + request.elapsed, request.tokens
        if request.first_token >= 0:
            first = request.first_token - started
        if tokens > 1:
            tpot = (request.last_token - request.first_token) / (tokens - 1)
    ended = result is not None and code is ErrorCode.NONE
    waited = max(0.0, cut_at - started - executed)
    if result is not None and ended:
        waited = result.waiting_time
    met = response is not None and response <= task.utility.ert
    return Outcome(
        arrival=arrival.at,
        urgency=task.urgency,
        response_s=response,
        waiting_s=waited,
        execution_s=executed,
        completed_at=started + waited + executed if ended else None,
        utility=utility,
        refused=code in REFUSALS,
        error_code=code,
        first_token_s=first,
        tpot_s=tpot,
        tokens=tokens,
        met=met,
        slo_met=_slo_met(task, first, tpot, tokens, met),
    )


def _slo_met(task: Task, first: float | None, tpot: float | None, tokens: int, met: bool) -> bool:
    """All tokens came: within the time budget, or the first one within TTFT and the others at
    TPOT."""
    if not (task.ttft or task.tpot or task.time_budget):
        return met
    if first is None or tokens < len(task.tokens):
        return False
    if task.time_budget:
        return first + (tokens - 1) * (tpot or 0.0) <= task.time_budget + ROUNDING
    return not (task.ttft and first > task.ttft) and not (
        task.tpot and tpot is not None and tpot > task.tpot
    )
