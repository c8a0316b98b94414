"""A simulated drone that does one thing wrong; it prints when it is closed."""

from __future__ import annotations

from typing import Any, ClassVar

from robot_adapters.adapter import AdapterParameter
from robot_adapters.simulated.adapter import SimulatedAdapter


class HostileAdapter(SimulatedAdapter):
    """``fault``: ``callback`` (one of its own), ``diagnostics``, ``halt`` (the first tries fail),
    ``never`` (all of them do)."""

    PARAMETERS: ClassVar[tuple[AdapterParameter, ...]] = (
        *SimulatedAdapter.PARAMETERS,
        AdapterParameter("fault", "", "what it does wrong"),
    )

    def __init__(self, robot_id: str, skills: Any, *, fault: str, **parameters: Any) -> None:
        super().__init__(robot_id, skills, **parameters)
        self.fault, self.halts = fault, 0

    def attach(self, node: Any) -> None:
        node.create_timer(0.05, self._own)

    def _own(self) -> None:
        if self.fault == "callback" and self._call is not None:
            raise RuntimeError("a fault in a callback")

    def diagnostics(self) -> dict[str, str]:
        if self.fault == "diagnostics":
            raise RuntimeError("no diagnostics\ud800")
        return {"pose": "\ud800"}

    def halt(self, now: float) -> None:
        self.halts += 1
        if self.fault == "never" or (self.fault == "halt" and self.halts <= 3):
            raise RuntimeError("the brake is stuck")
        super().halt(now)

    def close(self, now: float) -> None:
        print("closes", flush=True)
        super().close(now)
