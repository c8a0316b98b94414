"""How long a skill really takes, learned from what was measured. Pure: numbers in, seconds out.

A skill set says how long a skill takes; here that is corrected, for a kind of robot and for each
robot of it. ``learned_times.py`` has all skills of all robots.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterable, Sequence
from itertools import accumulate
from statistics import median
from typing import NamedTuple

from timely_llm.estimation.drift import Drift
from timely_llm.language.skills import TIMED_SKILL, Duration

QUANTILE = 0.1
"""Share of executions that may be over sooner than a robot is expected to run dry; why this one
stands in docs/operations.md."""

WINDOW = 64  # executions of a skill that count for a kind
OWN_WINDOW = 16  # for a robot
PRIOR = 1.5  # executions that the skill set's word counts for: two that agree outvote it
BETWEEN = 0.15  # how much robots of a kind differ: standard deviation of the log ratio
SHORTEST = 1e-3  # s; no execution counts as shorter
_FEWEST = 4  # executions with short, and as many with long arguments, to tell a constant from speed
_REACH = 1.5  # how many times as long the longest must be expected to take as the shortest
_BETTER = 0.8  # errors of the line, of those of the ratio, for it to be taken
_FENCE = 3.0  # median deviations; beyond them an execution counts for the mean as if it lay there


class Estimate(NamedTuple):
    """A time in s: its mean, and a low quantile, below which it hardly ever ends."""

    mean: float
    low: float


def total(estimates: Iterable[Estimate]) -> Estimate:
    """Of times that vary independently: it is unlikely that all are short at once."""
    mean = square = 0.0
    for estimate in estimates:
        mean += estimate.mean
        spread = estimate.mean - estimate.low
        square += spread * spread
    return Estimate(mean, max(0.0, mean - math.sqrt(square)))


class Sample(NamedTuple):
    """An execution: what the skill set's time model says of its arguments and what was measured,
    in s. ``robot`` is a robot's id."""

    expected: float
    measured: float
    robot: str = ""


class SkillTimes:
    """A distribution over the durations of one skill of one kind of robot, given what its time
    model expects (``expected``, s) for the arguments.

    Durations are ``line(expected) * exp(level of the robot) * ratio``. The line is the median ratio
    of measured to expected; where short and long arguments were used and it fits clearly better, a
    resistant line (Tukey) through the medians of both, which tells a wrong constant from a wrong
    speed. The ratios are those of the last ``WINDOW`` executions around it, with the time model's
    own spread counted as ``PRIOR`` of them. All of it is medians and ranks: executions that went
    wrong move it little, and their order does not count.
    """

    def __init__(self, duration: Duration, quantile: float = QUANTILE) -> None:
        self.quantile = quantile
        self._shape = prior_ratios(duration)
        self._middle = median(self._shape)
        self.samples: deque[Sample] = deque(maxlen=WINDOW)
        self.own: dict[str, RobotSkill] = {}
        self.version = 0
        self._fit()

    def observe(self, sample: Sample) -> None:
        self.samples.append(sample)
        self._fit()

    def restore(self, samples: Iterable[Sample]) -> None:
        """Go on from ``samples``, the oldest first."""
        self.samples = deque(samples, WINDOW)
        self._fit()

    def renew(self, robot: str, fresh: Sequence[Sample]) -> None:
        """All of ``robot``'s executions but the ``fresh`` ones are of a speed that it had."""
        self.samples = deque([s for s in self.samples if s.robot != robot], WINDOW)
        self.samples.extend(fresh)

    def line(self, expected: float) -> float:
        """The middle of the durations of calls of which ``expected`` s are expected, in s."""
        if expected < self._edge:  # a line with a constant below 0 ends somewhere
            return (self._constant + self._slope * self._edge) * expected / self._edge
        return self._constant + self._slope * expected

    def left(self, expected: float, level: float, elapsed: float = 0.0) -> Estimate:
        """How much longer a call takes that has lasted ``elapsed`` s; 0 where none took as long."""
        scale = self.line(expected) * math.exp(level)
        first = bisect_right(self._ratios, elapsed / scale) if elapsed > 0.0 else 0
        if first == len(self._ratios):
            return Estimate(0.0, 0.0)
        over = self._weights[first - 1] if first else 0.0
        rest = self._weights[-1] - over
        place = bisect_left(self._weights, over + self.quantile * rest, first)
        low = scale * self._ratios[min(place, len(self._ratios) - 1)] - elapsed
        mean = scale * self._sums[first] / rest - elapsed
        return Estimate(max(mean, low), max(0.0, low))

    def _fit(self) -> None:
        self.version += 1
        samples = self.samples
        logs = [math.log(sample.measured / sample.expected) for sample in samples]
        points = sorted([(log, 1.0) for log in logs] + [(self._middle, PRIOR)])
        self._constant, self._slope, self._edge = 0.0, math.exp(_middle_of(points)), 0.0
        if line := _resistant_line(samples, self._slope):
            self._constant, self._slope, self._edge = line
        rests = self.residuals(samples)
        self.spread = _spread(rests)
        known = {sample.robot for sample in samples} & self.own.keys()
        levels = {robot: self.own[robot].level for robot in known}
        around = [
            (rest - levels.get(sample.robot, 0.0), 1.0)
            for rest, sample in zip(rests, samples, strict=True)
        ]
        share = PRIOR / len(self._shape)
        self._publish(sorted(around + [(log - self._middle, share) for log in self._shape]))

    def residuals(self, samples: Iterable[Sample]) -> list[float]:
        """Log ratios of what was measured to the line."""
        line = self.line
        return [math.log(sample.measured / line(sample.expected)) for sample in samples]

    def _publish(self, points: Sequence[tuple[float, float]]) -> None:
        self._ratios = [math.exp(log) for log, _ in points]
        self._weights = list(accumulate(weight for _, weight in points))
        middle = _middle_of(points)
        fence = _FENCE * _middle_of(sorted((abs(log - middle), weight) for log, weight in points))
        products = [
            weight * math.exp(min(middle + fence, max(middle - fence, log)))
            for log, weight in reversed(points)
        ]
        self._sums = list(accumulate(products))[::-1]


class RobotSkill:
    """One robot's own executions of a skill, compared with those of its kind."""

    def __init__(self, robot: str, kind: SkillTimes) -> None:
        self.robot, self._kind = robot, kind
        self.samples: deque[Sample] = deque(maxlen=OWN_WINDOW)
        self.drift = Drift()
        self._level, self._version = 0.0, 0
        kind.own[robot] = self

    @property
    def level(self) -> float:
        """Log ratio of this robot's durations to its kind's: the median of its own and of ``PRIOR``
        that say 0, drawn towards 0 the more, the fewer they are and the more they vary."""
        kind = self._kind
        if self._version != kind.version:
            self._version = kind.version
            own = [(rest, 1.0) for rest in kind.residuals(self.samples)]
            doubt = (kind.spread / BETWEEN) ** 2
            share = len(own) / (len(own) + doubt) if own else 0.0
            self._level = share * _middle_of(sorted([*own, (0.0, PRIOR)]))
        return self._level

    def restore(self, samples: Iterable[Sample], drift: Drift) -> None:
        """Go on from ``samples``, the oldest first, and ``drift``."""
        self.samples, self.drift = deque(samples, OWN_WINDOW), drift

    def observe(self, expected: float, measured: float) -> bool:
        """An execution took ``measured`` s; whether the robot has notably changed its speed."""
        sample = Sample(max(TIMED_SKILL, expected), max(SHORTEST, measured), self.robot)
        self.samples.append(sample)
        if fresh := self.drift.observe(math.log(sample.measured / sample.expected)):
            self.samples = deque([*self.samples][-fresh:], OWN_WINDOW)
            self._kind.renew(self.robot, [*self.samples][:-1])
        self._kind.observe(sample)
        return self.drift.news()

    def left(self, expected: float, elapsed: float = 0.0) -> Estimate:
        return self._kind.left(max(TIMED_SKILL, expected), self.level, elapsed)


def prior_ratios(duration: Duration, points: int = 8) -> tuple[float, ...]:
    """Log ratios of durations to the expected one, as the time model has them, evenly spread."""
    least = max(TIMED_SKILL, duration.least)
    if duration.model == "uniform":
        low, high = duration.coefficients
        times = [low + (high - low) * (i + 0.5) / points for i in range(points)]
    elif duration.model == "choice":
        step, count = duration.coefficients[0], int(duration.coefficients[1])
        points = min(count, points)
        times = [step * (1 + i * count // points) for i in range(points)]
    else:
        return (0.0,)
    return tuple(math.log(max(SHORTEST, time) / least) for time in times)


def _middle_of(points: Sequence[tuple[float, float]]) -> float:
    """The weighted median of ordered (value, weight): the first value that half of the weight is
    not above."""
    weights = list(accumulate(weight for _, weight in points))
    return points[bisect_left(weights, weights[-1] / 2)][0]


def _spread(logs: Sequence[float]) -> float:
    if not logs:
        return 0.0
    middle = median(logs)
    return 1.4826 * median(abs(log - middle) for log in logs)


def _resistant_line(samples: Sequence[Sample], ratio: float) -> tuple[float, float, float] | None:
    """Constant (s), slope and where it begins (expected s) of a line through the medians of short
    and long calls; None where the data do not allow it or ``ratio`` alone does as well."""
    if len(samples) < 2 * _FEWEST:
        return None
    least = min(sample.expected for sample in samples)
    most = max(sample.expected for sample in samples)
    if most < _REACH * least:
        return None
    parting = math.sqrt(least * most)
    short = [sample for sample in samples if sample.expected < parting]
    long = [sample for sample in samples if sample.expected >= parting]
    if min(len(short), len(long)) < _FEWEST:
        return None
    left, right = (median(s.expected for s in part) for part in (short, long))
    below, above = (median(s.measured for s in part) for part in (short, long))
    slope = (above - below) / (right - left)
    if slope < 0.0:
        return None
    constant = median(s.measured - slope * s.expected for s in samples)
    if constant + slope * least < 0.1 * ratio * least:
        return None
    of_line = median(abs(math.log(s.measured / (constant + slope * s.expected))) for s in samples)
    of_ratio = median(abs(math.log(s.measured / (ratio * s.expected))) for s in samples)
    if of_line >= _BETTER * of_ratio:
        return None
    return constant, slope, least if constant < 0.0 else 0.0
