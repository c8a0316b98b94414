"""Time that never goes back, from a clock that may be set. Pure: readings in, seconds out."""

from __future__ import annotations

TOLERANCE = 0.5  # s between two readings by which the clocks may differ; more: one was set


class SteadyTime:
    """Keeps counting where the clock jumps, so that no timeout is early and none is lost.

    ``at`` takes the clock's reading, in s, and, where there is one, the reading of a clock that
    cannot be set: it reveals jumps in both directions. Simulated time has no such clock: after it
    is set back, time continues from where it was, and a jump forward counts as time that passed.
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
