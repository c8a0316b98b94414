"""When a robot asks its planner to register it, and what the answers mean. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from timely_llm.messages import ErrorCode

PERIOD = 0.25  # s, between two looks for a planner, and between two asks
ANSWER_TIMEOUT = 5.0  # s, for an answer, and then for the planner's publisher to be matched


@dataclass(frozen=True, slots=True)
class Grant:
    """The planner's answer: a session of the planner with this instance id."""

    session: int
    planner: str
    since: float


class Registration:
    """Asks again and again while there is no planner, or one that is not active. An id that another
    adapter has is asked for until ``patience`` (s) is over: after a crash, the planner needs a
    while to find the old adapter dead. Any other refusal is final."""

    def __init__(self, patience: float) -> None:
        self.grant: Grant | None = None
        self._patience = patience
        self._not_before = 0.0
        self._refused_since: float | None = None

    def due(self, now: float) -> bool:
        """Whether to ask now. One that got no answer in time is asked anew."""
        if self.grant is not None and now >= self.grant.since + ANSWER_TIMEOUT:
            self.grant = None  # its planner is gone
        return self.grant is None and now >= self._not_before

    def next_wake(self) -> float:
        if self.grant is not None:
            return self.grant.since + ANSWER_TIMEOUT
        return self._not_before

    def asked(self, now: float) -> None:
        self._not_before = now + ANSWER_TIMEOUT

    def nobody(self, now: float) -> None:
        """There is no planner to ask."""
        self._not_before = now + PERIOD

    def granted(self, session: int, planner: str, now: float) -> None:
        self.grant = Grant(session, planner, now)
        self._refused_since = None

    def opened(self) -> None:
        """The session has begun."""
        self.grant = None
        self._not_before = 0.0

    def refused(self, code: int, now: float) -> bool:
        """Whether to give up."""
        self._not_before = now + PERIOD
        if code == ErrorCode.PLANNER_INACTIVE:
            self._refused_since = None
            return False
        if self._refused_since is None:
            self._refused_since = now
        if code == ErrorCode.ROBOT_EXISTS:
            return now >= self._refused_since + self._patience
        return True
