"""How fast the machine is at the moment, by a fixed piece of work that is timed now and then.

A machine that is shared, or that has to cool down, is faster at times than at others. A duration in
units of the reference work is the same at all times, as far as both slow down together.
"""

from __future__ import annotations

import copy
import decimal
import fractions
import io
import json
import math
import re
import textwrap
import time
import tokenize
from collections.abc import Callable

PERIOD = 0.01  # s between two runs of the reference work
WINDOW = 0.3  # s, about, over which its durations are averaged


def reference_work() -> None:
    """A third of a millisecond of library code of many kinds. An engine's step, which runs through
    a lot of code, is slowed down by the same things: of the work that was tried (loops, matrices,
    pointers, scattered memory) this kept step with it best."""
    json.dumps({"a": [1, 2, {"b": "c"}] * 5})
    re.sub(r"a(b+)", "x", "abbb" * 20)
    copy.deepcopy({"x": [1, (2, 3)] * 3})
    textwrap.wrap("hello world " * 10, 20)
    str(fractions.Fraction(3, 7) + 1)
    list(tokenize.generate_tokens(io.StringIO("a=b+1\nc(d)").readline))
    decimal.Decimal("1.2") * 3


class SpeedGauge:
    """Times the reference ``work`` when that is due. ``clock`` gives s."""

    def __init__(
        self,
        work: Callable[[], object] = reference_work,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._work, self._clock = work, clock
        self._average, self._at = 0.0, -math.inf

    def seconds(self) -> float:
        """How long the reference work takes, in s, as an exponential average of its last runs; runs
        it if ``PERIOD`` has passed."""
        now = self._clock()
        if now >= self._at + PERIOD:
            self._work()
            end = self._clock()
            weight = -math.expm1((self._at - end) / WINDOW)  # 1 for the first one
            self._average += weight * (end - now - self._average)
            self._at = end
        return self._average
