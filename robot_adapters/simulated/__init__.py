"""The simulated robots: a drone or an arm in a world of boxes, and what their camera sees."""

from robot_adapters.simulated.adapter import SimulatedAdapter

__all__ = ["SimulatedAdapter"]
