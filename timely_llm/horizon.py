"""When a robot runs out of work. Starts from the skills' time models, follows the robot's reports.

Times are the planner's, in s; nothing here reads a clock.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Horizon:
    """The end of what a robot holds of one plan.

    ``end`` is when it is expected to run dry; ``dry`` says that it reported to be so.
    """

    end: float = 0.0
    dry: bool = True
    _flying: dict[int, float] = field(default_factory=dict)  # sent, not yet received: duration, s

    def sent(self, index: int, duration: float, delivery: float) -> None:
        """Segment ``index`` with ``duration`` s of work will be at the robot at ``delivery``."""
        self._flying[index] = duration
        self.end = max(self.end, delivery) + duration
        self.dry = False

    def received(self, index: int, total_remaining: float, now: float) -> None:
        """The robot holds segment ``index``: its reports count it, this one first."""
        self._flying.pop(index, None)
        self.reported(total_remaining, now)

    def reported(self, total_remaining: float, now: float) -> None:
        """The robot says that what it holds lasts ``total_remaining`` s; more is on its way."""
        self.end = now + total_remaining + sum(self._flying.values())
        self.dry = False

    def ran_dry(self, now: float) -> None:
        """The robot says that it has nothing to do. What is on its way may yet reach it."""
        if self._flying:
            self.end = now + sum(self._flying.values())
        elif not self.dry:
            self.end, self.dry = now, True

    def remaining(self, now: float) -> float:
        """Time in s until the robot runs dry; -1 where it is."""
        return -1.0 if self.dry else max(0.0, self.end - now)
