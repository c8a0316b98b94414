"""Time that only ever passes, from a clock that may be set. Pure: readings in, seconds out."""

from __future__ import annotations

TOLERANCE = 0.5  # s that two clocks may differ by in one look before one of them was set


class SteadyTime:
    """Counts on where the clock jumps, so that no timeout comes early and none comes never.

    ``at`` takes what the clock reads, in s, and, where there is one, what a clock reads that cannot
    be set: then jumps either way are seen. Simulated time has none beside it: time that is set back
    goes on from where it was, and a leap forward is taken for time that has passed.
    """

    def __init__(self) -> None:
        self._read: float | None = None
        self._steady = 0.0
        self._offset = 0.0
        self._now = 0.0

    def at(self, read: float, steady: float | None = None) -> float:
        """The time in s; it never goes back."""
        if self._read is not None:
            step = read - self._read
            passed = max(0.0, step) if steady is None else steady - self._steady
            wrong = step - passed
            if abs(wrong) > (TOLERANCE if steady is not None else 0.0):
                self._offset -= wrong
        self._read, self._steady = read, steady or 0.0
        self._now = max(self._now, read + self._offset)
        return self._now
