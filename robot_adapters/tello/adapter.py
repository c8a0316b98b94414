"""The adapter of a Ryze Tello (or Tello EDU): skills, limits, when it flies and when it lands.

``docs/robots.md`` is its manual. It decides and looks, and returns at once: what takes time is done
in the thread of ``flight.py``, what goes over the network is in ``link.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from robot_adapters.adapter import Adapter, AdapterError, AdapterParameter, Notice, Progress
from robot_adapters.perception import make_perception, scene
from robot_adapters.tello.actions import Actions, Eyes
from robot_adapters.tello.dead_reckoning import DeadReckoning
from robot_adapters.tello.drone_skills import (
    SAYS,
    TAKEOFFS,
    WAITS,
    misfits,
    missing,
    moves,
    step_of,
)
from robot_adapters.tello.flight import TAKEOFF_HEIGHT, Flight, Job
from robot_adapters.tello.landing import Landing
from robot_adapters.tello.link import TelloLink
from timely_llm.language.skills import Skill, SkillSet, Value
from timely_llm.protocols.messages import SkillCall

TAKEOFF_TIME = 3.5  # s, about
LOOK_BUSY, LOOK_IDLE = 0.02, 0.1  # s, between two looks at the drone
LAST_WORDS = 1.5  # s, that the end may take
SILENCE = 14.0  # s; after 15 s of silence the drone lands by itself


@dataclass(slots=True)
class _Call:
    """The call in progress; without a job it only takes its time."""

    started: float
    expected: float
    job: Job | None = None


class TelloAdapter(Adapter):
    """``Adapter`` documents the methods."""

    PARAMETERS: ClassVar[tuple[AdapterParameter, ...]] = (
        AdapterParameter("host", "192.168.10.1", "address of the drone"),
        AdapterParameter("port", 8889, "its command port", "", 1, 65535),
        AdapterParameter("local_port", 0, "our command port; 0: any free one", "", 0, 65535),
        AdapterParameter("state_port", 8890, "our port for its state", "", 1025, 65535),
        AdapterParameter("auto_takeoff", True, "it takes off before the first motion"),
        AdapterParameter(
            "land_idle", 30.0, "it lands after so long without a call; 0: never", "s", 0.0, 600.0
        ),
        AdapterParameter("land_after_plan", False, "it lands when a plan is over"),
        AdapterParameter(
            "land_after_stop",
            10.0,
            "stopped, it hovers so long, then lands; -1: never",
            "s",
            -1.0,
            600.0,
        ),
        AdapterParameter(
            "hover_time", 5.0, "without planner it hovers so long, then lands", "s", 0.0, SILENCE
        ),
        AdapterParameter("land_on_exit", True, "it lands when the node ends"),
        AdapterParameter("min_battery", 15, "below it, no motion is begun", "%", 0, 100),
        AdapterParameter(
            "link_timeout", 2.0, "a drone that is silent for longer is lost", "s", 0.3, 60.0
        ),
        AdapterParameter(
            "answer_timeout",
            5.0,
            "a motion may take twice its expected time and this",
            "s",
            0.1,
            60.0,
        ),
        AdapterParameter("keepalive", 5.0, "how often it is kept in the air", "s", 0.1, SILENCE),
        AdapterParameter("drift", 0.05, "what a way may be off, as a share of it", "", 0.0, 1.0),
        AdapterParameter(
            "perception", "", "module:class that looks at its picture; empty: nobody does"
        ),
        AdapterParameter("perception_config", "", "for the perception"),
    )

    def __init__(self, robot_id: str, skills: SkillSet, **given: Any) -> None:
        values = {parameter.name: parameter.default for parameter in self.PARAMETERS} | given
        self.skills = skills
        perception = make_perception(values["perception"], robot_id, values["perception_config"])
        _refuse(skills, perception)
        self._values = values
        self._dead_reckoning = DeadReckoning(skills.bounds.geofence, values["drift"])
        ports = (values["port"], values["local_port"], values["state_port"])
        link = TelloLink(values["host"], *ports)
        self.flight = Flight(link, self._dead_reckoning, values["answer_timeout"])
        self._eyes = Eyes(perception, self.flight)
        self._actions = Actions(self.flight, self._eyes)
        self._landing = Landing(self.flight, values)
        self._call: _Call | None = None
        self._last = Progress(done=True)
        self._said = self._error = ""

    # ---- calls ---------------------------------------------------------------------------------

    def check(self, call: SkillCall) -> str | None:
        skill, values = self._parsed(call)
        if skill.role == "probe" and not self._eyes.answers:
            return "the drone cannot answer: run its node with probes:=planner, or a perception"
        if skill.long_name in (SAYS, WAITS):
            return None
        if not self.flight.connected:
            return self.flight.trouble
        airborne = moves(skill) or skill.long_name in TAKEOFFS
        return (self._unfit(skill, values) if airborne else "") or None

    def _unfit(self, skill: Skill, values: tuple[Value, ...]) -> str:
        """Why this motion must not be begun, or empty."""
        battery = self.flight.link.state().get("bat")
        if battery is None:
            return "the drone does not tell its battery"
        limit = self._values["min_battery"]
        if battery < limit:
            return f"battery is at {battery} %: min_battery is {limit} %"
        if not self.flight.flying and not self._values["auto_takeoff"] and moves(skill):
            return "the drone is on the ground, and auto_takeoff is off"
        try:
            step = step_of(skill.long_name, values[0]) if values else None
        except ValueError as error:
            return str(error)
        height = None if self.flight.flying else TAKEOFF_HEIGHT
        return self._dead_reckoning.outside(step.way, height) if step else ""

    def travel(self, call: SkillCall) -> float:
        skill, values = self._parsed(call)
        if skill.long_name == "goto":  # as far as one move may lead
            return min([5.0, *(s.distance for s in self._eyes.sightings)])
        try:
            step = step_of(skill.long_name, values[0]) if values else None
        except ValueError:
            return 0.0
        return step.way.length if step else 0.0

    def start(self, call: SkillCall, now: float) -> None:
        skill, values = self._parsed(call)
        expected = max(0.0, call.expected_duration)
        self._landing.busy(now)
        if skill.long_name == SAYS:
            self._said = str(values[0])
            self._call = _Call(now, 0.0)
        elif skill.long_name == WAITS:
            self._call = _Call(now, float(values[0]))
        else:
            action = self._actions.action(skill, values, expected)
            lift = TAKEOFF_TIME if moves(skill) and not self.flight.flying else 0.0
            self._call = _Call(now, expected + lift, self.flight.submit(call.name, action))

    def poll(self, now: float) -> Progress:
        self.flight.observe()
        lost = self._watch_link()
        if self._call is not None:
            self._last = self._progress(self._call, lost, now)
            if self._last.done:
                self._call = None
                self._landing.idle(now)
        if self._last.error:
            self._error = self._last.error
        self._landing.look(now, self._call is not None)
        return self._last

    def _progress(self, call: _Call, lost: str, now: float) -> Progress:
        elapsed = now - call.started
        remaining = max(0.0, call.expected - elapsed)
        job = call.job
        if job is None and not (lost and self.flight.flying):
            return Progress(elapsed >= call.expected, elapsed=elapsed, remaining=remaining)
        if job is not None and job.done.is_set():
            return Progress(True, job.value, job.error, elapsed)
        if lost:
            return Progress(True, error=lost, elapsed=elapsed)
        return Progress(False, elapsed=elapsed, remaining=remaining)

    def _watch_link(self) -> str:
        """What is wrong with the link, or empty."""
        silence, limit = self.flight.link.silence(), self._values["link_timeout"]
        if self.flight.connected and silence is not None and silence > limit:
            self.flight.lose(f"link lost: nothing heard from the drone for {silence:.1f} s")
        return self.flight.trouble

    def next_poll(self, now: float) -> float | None:
        return now + (LOOK_IDLE if self._call is None else LOOK_BUSY)

    # ---- without calls -------------------------------------------------------------------------

    def halt(self, now: float) -> None:
        self._call, self._last = None, Progress(done=True)
        self._landing.idle(now)
        self.flight.halt()

    def hold(self, now: float) -> None:
        if not self._landing.holding:
            self._call, self._last = None, Progress(done=True)
            self._landing.hold(now)
            self.flight.halt()

    def resume(self, now: float) -> None:
        self._landing.resume(now)

    def notice(self, notice: Notice, now: float) -> None:
        self._landing.notice(notice, now)

    def observe(self) -> str:
        return scene(self._eyes.sightings)

    def diagnostics(self) -> Mapping[str, str]:
        state, silence = self.flight.link.state(), self.flight.link.silence()
        shown = {
            "battery": _unit(state, "bat", "%"),
            "height": _unit(state, "h", "cm"),
            "range": _unit(state, "tof", "cm"),
            "temperature": _unit(state, "temph", "deg C"),
            "motor time": _unit(state, "time", "s"),
            "attitude": " ".join(f"{k} {state[k]}" for k in ("pitch", "roll", "yaw") if k in state),
            "speed": " ".join(str(state[k]) for k in ("vgx", "vgy", "vgz") if k in state),
            "silence": "" if silence is None else f"{silence:.1f} s",
            "said": self._said,
            "last error": self._error,
        }
        facts = {"state": self._landing.words(), "pose": str(self._dead_reckoning)}
        return facts | {name: text for name, text in shown.items() if text}

    def close(self, now: float) -> None:
        self._call = None
        self.flight.close(self._values["land_on_exit"], LAST_WORDS)

    def _parsed(self, call: SkillCall) -> tuple[Skill, tuple[Value, ...]]:
        skill = self.skills[call.name]
        return skill, tuple(skill.parse_values(call.evaluated))


def _refuse(skills: SkillSet, perception: object) -> None:
    """Refuse, at start, skills that this drone could only pretend to do."""
    if faults := misfits(skills):
        raise AdapterError(f"skill set {skills.kind!r}: {faults[0]}")
    lacking = missing(skills, perception)
    unknown = [name for name, need in lacking.items() if not need]
    if unknown:
        raise AdapterError(
            f"skill set {skills.kind!r}: a Tello cannot do {', '.join(unknown)}: leave it out"
        )
    if lacking:
        needs = ", ".join(sorted(set(lacking.values())))
        raise AdapterError(
            f"skill set {skills.kind!r}: the Tello SDK alone cannot do {', '.join(lacking)}: name "
            f"a 'perception' that can ({needs}; docs/robots.md), or use a skill set without them "
            "(config/skills/sdk/tello_sdk.yaml)"
        )


def _unit(state: Mapping[str, Any], name: str, unit: str) -> str:
    return f"{state[name]} {unit}" if name in state else ""
