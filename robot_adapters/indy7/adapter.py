"""The adapter of a Neuromeka Indy7 arm: skills, limits, diagnostics.

``docs/robots.md`` is its manual. It looks, and returns at once: what is asked of the controller is
decided in ``arm.py``, and goes over the network in ``link.py``, which needs the SDK and
is imported when an arm is made.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from robot_adapters.adapter import Adapter, AdapterError, AdapterParameter, Notice, Progress
from robot_adapters.indy7.answers import STATES
from robot_adapters.indy7.arm import LOOK_BUSY, Answer, Arm, Settings
from robot_adapters.indy7.arm_skills import SAYS, SIGHTS, WAITS, ArmSkills, misfits
from robot_adapters.indy7.cell import Cell, load_cell
from timely_llm.language.skills import Skill, SkillSet, Value
from timely_llm.paths import share
from timely_llm.protocols.messages import SkillCall

POLL_BUSY, POLL_IDLE = 0.02, 0.1  # s, between two looks at what was answered
LAST_WORDS = 1.0  # s, that the end may take
UNMOVED = (WAITS, SAYS, "is_visible")


@dataclass(slots=True)
class _Call:
    """The call in progress; one that asks nothing of the arm only takes its time."""

    started: float
    expected: float
    value: Value | None
    moves: bool


class Indy7Adapter(Adapter):
    """``Adapter`` documents the methods."""

    PARAMETERS: ClassVar[tuple[AdapterParameter, ...]] = (
        AdapterParameter("host", "192.168.0.10", "address of the controller"),
        AdapterParameter(
            "index", 0, "which of its robots: 0 by ports 20001 on, 1 by 30001 on", "", 0, 1
        ),
        AdapterParameter("cell", "", "cell by name (config/cells), or a file; it must be given"),
        AdapterParameter("speed", 15.0, "of all motions, of the arm's own limit", "%", 1.0, 100.0),
        AdapterParameter("acceleration", 100.0, "of all motions", "%", 1.0, 900.0),
        AdapterParameter(
            "stop_category",
            2,
            "0: brakes at once, 1: slows down and brakes, 2: slows down",
            "",
            0,
            2,
        ),
        AdapterParameter("call_timeout", 1.0, "the deadline of every call", "s", 0.05, 30.0),
        AdapterParameter(
            "link_timeout", 2.0, "a controller silent for longer is lost", "s", 0.2, 60.0
        ),
        AdapterParameter(
            "start_timeout", 2.0, "a move that was taken must begin within", "s", 0.1, 60.0
        ),
    )

    def __init__(self, robot_id: str, skills: SkillSet, **given: Any) -> None:
        values = {parameter.name: parameter.default for parameter in self.PARAMETERS} | given
        self.skills = skills
        if faults := misfits(skills):
            raise AdapterError(f"skill set {skills.kind!r}: {faults[0]}")
        self.actions = ArmSkills(find_cell(values["cell"]))
        same = ("stop_category", "speed", "acceleration", "link_timeout", "start_timeout")
        self.arm = Arm(Settings(**{name: values[name] for name in same}))
        self._link = _connect(values["host"], values["index"], values["call_timeout"])
        self._call: _Call | None = None
        self._last = Progress(done=True)
        self._now = 0.0
        self._said = self._error = ""

    # ---- calls ---------------------------------------------------------------------------------

    def check(self, call: SkillCall) -> str | None:
        skill, values = self._parsed(call)
        if skill.role == "probe":
            return "the arm cannot answer: run its node with probes:=planner"
        if skill.long_name in UNMOVED:
            return None
        reason, look = self.arm.trouble(self._now), self.arm.look
        if not reason and look is not None:
            reason = self.actions.refusal(skill, values, look)
        return reason or None

    def travel(self, call: SkillCall) -> float:
        if self.arm.look is None:
            return 0.0
        return self.actions.travel(*self._parsed(call), self.arm.look)

    def start(self, call: SkillCall, now: float) -> None:
        self._now = now
        skill, values = self._parsed(call)
        expected = max(0.0, call.expected_duration)
        value = self.actions.sees(str(values[0])) if skill.long_name in SIGHTS else None
        if skill.long_name == SAYS:
            self._said = str(values[0])
        plan = self.actions.plan(skill, values)
        if plan is None:
            expected = float(values[0]) if skill.long_name == WAITS else 0.0
        self._call = _Call(now, expected, value, plan is not None)
        if plan is not None:
            self.arm.begin(plan, now)
            self._send()

    def poll(self, now: float) -> Progress:
        self._now = now
        self._exchange(self._link.answers(), now)
        if self._call is not None:
            self._last = self._progress(self._call, now)
            if self._last.done:
                self._call = None
        if self._last.error:
            self._error = self._last.error
        return self._last

    def _progress(self, call: _Call, now: float) -> Progress:
        elapsed = now - call.started
        remaining = max(0.0, call.expected - elapsed)
        if not call.moves:
            done = elapsed >= call.expected
            return Progress(done, call.value if done else None, "", elapsed, remaining)
        if self.arm.error is None:
            return Progress(False, elapsed=elapsed, remaining=remaining)
        value = None if self.arm.error else call.value
        return Progress(True, value, self.arm.error, elapsed)

    def next_poll(self, now: float) -> float | None:
        busy = self._call is not None or self.arm.busy
        return now + (POLL_BUSY if busy else POLL_IDLE)

    # ---- without calls -------------------------------------------------------------------------

    def halt(self, now: float) -> None:
        self._now, self._call, self._last = now, None, Progress(done=True)
        self.arm.drop(now)
        self._send()

    def hold(self, now: float) -> None:
        if self._call is not None:
            self.halt(now)

    def notice(self, notice: Notice, now: float) -> None:
        """A stop is said whatever the arm seems to do."""
        if notice is Notice.STOPPED:
            self.arm.stop(now)
            self._send()

    def recover(self, now: float) -> str:
        self._exchange(self._link.answers(), now)
        reason = self.arm.recover(now)
        self._send()
        return reason

    def observe(self) -> str:
        return self.actions.scene()

    def diagnostics(self) -> Mapping[str, str]:
        look, silence = self.arm.look, self.arm.silence(self._now)
        facts = {"state": self.arm.trouble(self._now)}
        if look is not None:
            facts["state"] = facts["state"] or STATES.get(look.op_state, "")
            facts["joints"] = " ".join(f"{angle:.1f}" for angle in look.joints) + " deg"
            facts["tool"] = "x {:.0f} y {:.0f} z {:.0f} mm, u {:.0f} v {:.0f} w {:.0f} deg".format(
                *look.tool
            )
        shown = {
            "holds": self.actions.holds,
            "silence": "" if silence is None else f"{silence:.1f} s",
            "recovery": self.arm.recovery,
            "said": self._said,
            "last error": self._error,
        }
        return facts | {name: text for name, text in shown.items() if text}

    def close(self, now: float) -> None:
        self.halt(now)
        began = time.monotonic()
        while self.arm.busy and (passed := time.monotonic() - began) < LAST_WORDS:
            self._exchange(self._link.wait(LOOK_BUSY), now + passed)
        self._link.close()

    def _exchange(self, answers: Iterable[Answer], now: float) -> None:
        for number, answer, error in answers:
            self.arm.on_answer(number, answer, error, now)
        self.arm.tick(now)
        self._send()

    def _send(self) -> None:
        for request in self.arm.requests:
            self._link.submit(request)
        self.arm.requests.clear()

    def _parsed(self, call: SkillCall) -> tuple[Skill, tuple[Value, ...]]:
        skill = self.skills[call.name]
        return skill, tuple(skill.parse_values(call.evaluated))


def find_cell(name: str) -> Cell:
    """The cell of a bundled name, or of a file; ``AdapterError`` says why there is none."""
    folder = share("config", "cells")
    known = ", ".join(sorted(path.stem for path in folder.glob("*.yaml")))
    if not name:
        raise AdapterError(f"parameter 'cell' must be given: a file, or one of {known}")
    bundled = folder / f"{name}.yaml"
    path = bundled if "/" not in name and bundled.is_file() else Path(name).expanduser()
    if not path.is_file():
        raise AdapterError(f"parameter 'cell': there is no file {name!r} (bundled: {known})")
    return load_cell(path)


def _connect(host: str, index: int, timeout: float) -> Any:
    try:
        from robot_adapters.indy7.link import IndyLink
    except ImportError as error:
        raise AdapterError(
            f"adapter 'indy7' needs the package neuromeka, in an environment of its own "
            f"(`make indy`; docs/robots.md): {error}"
        ) from error
    return IndyLink(host, index, timeout)
