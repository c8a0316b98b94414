"""The former place of ``robot_adapters.simulated.camera``, for fleet files that name it."""

from robot_adapters.simulated.camera import SimulatedCamera

__all__ = ["SimulatedCamera"]
