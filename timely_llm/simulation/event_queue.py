"""What is to happen, in order of time: the kernel of every discrete-event simulation here. Pure."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable
from typing import Any


class EventQueue:
    """Actions and when they are due, in s. What is due at the same time goes in order of asking."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._order = itertools.count()

    @property
    def next_at(self) -> float:
        """When the next action is due; infinite where there is none."""
        return self._heap[0][0] if self._heap else math.inf

    def at(self, time: float, action: Callable[..., None], *arguments: Any) -> None:
        """Have ``action(time, *arguments)`` called at ``time``."""
        heapq.heappush(self._heap, (time, next(self._order), action, arguments))

    def run(self, until: float) -> None:
        """Do all that is due by ``until``, and what comes of it by then."""
        heap = self._heap
        while heap and heap[0][0] <= until:
            time, _, action, arguments = heapq.heappop(heap)
            action(time, *arguments)
