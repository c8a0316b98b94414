"""A planner whose simulated engine breaks in its ``AT``th step that writes a plan: it hangs, or it
raises, as the environment's BREAK says."""

import os
import threading

from timely_llm.engine.simulated import SimulatedEngine
from timely_llm.ros.planner_node import main

__all__ = ["main"]

AT = 3
_step = SimulatedEngine.step
_count = 0


def _breaking(self, run, *arguments, **named):
    global _count
    _count += any(not name.startswith("pin") for name in run)
    if _count == AT:
        if os.environ["BREAK"] == "raise":
            raise RuntimeError("a test")
        threading.Event().wait()
    return _step(self, run, *arguments, **named)


SimulatedEngine.step = _breaking
