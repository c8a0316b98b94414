"""Whether one robot's skill has become slower or faster than it used to be. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from statistics import median

_START = 8  # executions from which the first idea of what is usual is made
_STEP = math.log(1.5)  # the change that is looked for, as a log ratio
_ALARM = math.log(1e6)  # log likelihood ratio at which it is believed
_MOST = _ALARM / 4  # of one execution: it takes at least four
_NOTABLE = math.log(1.3)  # a change that is worth reporting
_BACK = math.log(1.2)  # as near to what was usual is usual again
_LEAST_SPREAD = 0.05
_MEMORY = 200  # executions; how slowly the level follows by itself
_RECENT = 32
_SURE = 18.5  # times the spread, squared: executions until the level is known to a sixth of a step


@dataclass(slots=True)
class Drift:
    """Follows the log ratios of measured to expected durations, one after the other.

    Page's test in both directions: the log likelihood ratio of a change by a factor of 1.5 is
    summed up and never below 0. No single execution counts for more than a quarter of an alarm, so
    that an outlier raises none. A skill whose times vary by themselves takes more executions to
    judge. ``usual`` is the level when it was first known well. ``factor`` is how many times as long
    as usual the skill takes; 1 while that is not notable.
    """

    count: int = 0  # executions
    level: float = 0.0
    spread: float = 0.0
    usual: float | None = None
    factor: float = 1.0
    _up: float = 0.0
    _down: float = 0.0
    _recent: list[float] = field(default_factory=list)  # since both sums were 0, or of the start

    def copy(self) -> Drift:
        """A copy that shares nothing with this one."""
        return replace(self, _recent=list(self._recent))

    @classmethod
    def resumed(
        cls, count: int, level: float, spread: float, usual: float | None, factor: float
    ) -> Drift:
        """A drift in the state that another one had, with sums of 0. One that had seen fewer
        executions than its start takes begins again."""
        if count < _START:
            return cls()
        return cls(count, level, max(_LEAST_SPREAD, spread), usual, factor)

    def observe(self, ratio: float) -> int:
        """Take an execution's log ratio in. Returns how many of the last executions are of a new
        speed; 0: nothing has changed."""
        self.count += 1
        if self.count <= _START:
            self._recent.append(ratio)
            if self.count == _START:
                self._begin()
            return 0
        if self.usual is None and self.count > (_SURE * self.spread) ** 2:
            self.usual = self.level
        fresh = self._sum(ratio) if self.usual is not None else 0
        if not fresh:
            self._follow(ratio)
        return fresh

    def news(self) -> bool:
        """Update ``factor``; whether it has notably changed."""
        if self.usual is None:
            return False
        shift, known = self.level - self.usual, math.log(self.factor)
        if self.factor != 1.0 and abs(shift) < _BACK:
            self.factor = 1.0
            return True
        if abs(shift - known) < _NOTABLE:
            return False
        self.factor = math.exp(shift)
        return True

    def _begin(self) -> None:
        self.level = median(self._recent)
        deviation = median(abs(ratio - self.level) for ratio in self._recent)
        self.spread = max(_LEAST_SPREAD, 1.4826 * deviation)
        self._recent.clear()

    def _sum(self, ratio: float) -> int:
        away, variance = ratio - self.level, self.spread * self.spread
        slower = min(_MOST, _STEP / variance * (away - _STEP / 2))
        faster = min(_MOST, _STEP / variance * (-away - _STEP / 2))
        self._up, self._down = max(0.0, self._up + slower), max(0.0, self._down + faster)
        if not (self._up or self._down):
            self._recent.clear()
            return 0
        self._recent = [*self._recent, ratio][-_RECENT:]
        if max(self._up, self._down) < _ALARM:
            return 0
        fresh = len(self._recent)
        self.level = median(self._recent)
        self._up = self._down = 0.0
        self._recent.clear()
        return fresh

    def _follow(self, ratio: float) -> None:
        """Slow wear moves the level; a single execution moves it little."""
        away, weight = ratio - self.level, 1.0 / min(self.count, _MEMORY)
        reach = 2.0 * self.spread
        self.level += weight * min(reach, max(-reach, away))
        deviation = self.spread / 1.2533
        deviation += weight * (min(abs(away), 3.0 * self.spread) - deviation)
        self.spread = max(_LEAST_SPREAD, 1.2533 * deviation)
