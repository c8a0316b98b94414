"""When a robot asks its planner to register it, and what the answers mean. Pure."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

from timely_llm.protocols.messages import ErrorCode

PERIOD = 0.25  # s, between two looks for a planner, and between two asks
ASK_AGAIN = 5.0  # s without an answer; discovery alone may take 3 s on a busy machine
PLANNERS = 4  # of which it is remembered that they were heard
GRANT_TIMEOUT = 5.0  # s, for the planner's publisher to be matched


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
        self._asked = self._answered = 0  # numbers of requests
        self._latest = ("", 0)  # planner and session of the last grant
        self._heard: deque[str] = deque(maxlen=PLANNERS)
        self._asked_at = -math.inf  # s

    def heard(self, planner: str, now: float) -> None:
        """A planner lives. Another one than was heard before is asked at once: a request may have
        gone to the one before, which counts as there for a while after its end."""
        if planner in self._heard:
            return
        if self._heard:
            self._not_before = min(self._not_before, max(now, self._asked_at + PERIOD))
        self._heard.append(planner)

    def due(self, now: float) -> bool:
        """Whether to ask now, and again where an answer is missing."""
        if self.grant is not None and now >= self.grant.since + GRANT_TIMEOUT:
            self.grant = None  # its planner is gone
        return self.grant is None and now >= self._not_before

    def next_wake(self) -> float:
        """When ``due`` may change by itself, in s."""
        if self.grant is not None:
            return self.grant.since + GRANT_TIMEOUT
        return self._not_before

    def asked(self, now: float) -> int:
        """The request was sent; its number, for its answer."""
        self._not_before, self._asked_at = now + ASK_AGAIN, now
        self._asked += 1
        return self._asked

    def is_news(self, number: int) -> bool:
        """Whether a refusal counts: no later request has been answered."""
        if number <= self._answered:
            return False
        self._answered = number
        return True

    def nobody(self, now: float) -> None:
        """There is no planner to ask."""
        self._not_before = now + PERIOD

    def granted(self, number: int, session: int, planner: str, now: float) -> None:
        """Every registration ends the session of the one before. A planner that was busy may take
        several requests in any order: its highest session is the one that it knows."""
        self._answered = max(self._answered, number)
        if planner == self._latest[0] and session <= self._latest[1]:
            return
        self._latest = (planner, session)
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
