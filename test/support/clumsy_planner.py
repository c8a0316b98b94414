"""A planner that stumbles in its last step: what it has learned cannot be kept."""

from timely_llm.ros.planner_node import main
from timely_llm.ros.times_keeper import TimesKeeper

__all__ = ["main"]


def _fails(self, learned) -> None:
    raise RuntimeError("a test")


TimesKeeper.finish = _fails
