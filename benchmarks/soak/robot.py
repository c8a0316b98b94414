"""A simulated robot that is faster than life, and that writes down every motion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from benchmarks.soak.records import Writer
from robot_adapters.adapter import Adapter, AdapterParameter, Progress
from robot_adapters.simulated.adapter import SimulatedAdapter
from timely_llm.language.skills import SkillSet
from timely_llm.protocols.messages import SkillCall


class FastAdapter(Adapter):
    """``SimulatedAdapter`` on a clock that runs ``speed`` times as fast. Motions go to the file
    ``log``."""

    PARAMETERS: ClassVar[tuple[AdapterParameter, ...]] = (
        *SimulatedAdapter.PARAMETERS,
        AdapterParameter("speed", 1.0, "times as fast as life", "", 1.0, 1000.0),
        AdapterParameter("log", "", "file for the motions, as JSON lines"),
    )

    def __init__(
        self, robot_id: str, skills: SkillSet, *, speed: float, log: str, **parameters: Any
    ) -> None:
        self.skills = skills
        self._robot = SimulatedAdapter(robot_id, skills, **parameters)
        self._speed, self._records = speed, Writer(log)
        self._moving = False
        self._write("place")

    def check(self, call: SkillCall) -> str | None:
        return self._robot.check(call)

    def travel(self, call: SkillCall) -> float:
        return self._robot.travel(call)

    def start(self, call: SkillCall, now: float) -> None:
        self._write("start", name=call.name, values=call.evaluated)
        self._moving = True
        self._robot.start(call, now * self._speed)

    def poll(self, now: float) -> Progress:
        progress = self._robot.poll(now * self._speed)
        if progress.done and self._moving:
            self._rests("end")
        speed = self._speed
        elapsed, remaining = progress.elapsed / speed, progress.remaining / speed
        return replace(progress, elapsed=elapsed, remaining=remaining)

    def next_poll(self, now: float) -> float | None:
        due = self._robot.next_poll(now * self._speed)
        return None if due is None else due / self._speed

    def halt(self, now: float) -> None:
        self._robot.halt(now * self._speed)
        self._rests("halt")

    def hold(self, now: float) -> None:
        self._robot.hold(now * self._speed)
        self._rests("halt")

    def resume(self, now: float) -> None:
        self._robot.resume(now * self._speed)

    def observe(self) -> str:
        return self._robot.observe()

    def diagnostics(self) -> Mapping[str, str]:
        return self._robot.diagnostics()

    def close(self, now: float) -> None:
        self._robot.close(now * self._speed)
        self._rests("close")

    def _rests(self, event: str) -> None:
        self._moving = False
        self._write(event)

    def _write(self, event: str, **fields: Any) -> None:
        self._records.write(event, at=[round(x, 6) for x in self._robot.body.pose.point], **fields)
