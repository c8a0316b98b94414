"""A simulated Ryze Tello: what the drone makes of the SDK's text commands. Pure.

Time comes in as ``now`` in s. ``simulator.py`` puts it on UDP. Commands, answers and the
state line are those of the Tello SDK 2.0 (and ``port`` of 3.0); execution times are those measured
for TimelyLLM. Positions are m from where it was switched on, x ahead, y left, yaw counterclockwise.
"""

from __future__ import annotations

import math
import random
from collections import deque
from dataclasses import replace

from robot_adapters.simulated.faults import Fault, FaultError, parse_fault
from robot_adapters.tello.sim_motion import MOTIONS, Chance, Motion, Pose, planned, whole
from robot_adapters.tello.sim_words import readings, state_line

AUTO_LAND = 15.0  # s without a command (SDK 2.0, Safety feature)
TAKEOFF_TIME, TAKEOFF_HEIGHT = 3.5, 0.8  # s, m
LANDING_SPEED = 0.5  # m/s
LOWEST_BATTERY = 10.0  # percent; below, the motors do not start
EMPTY_BATTERY = 4.0  # percent; below, it lands by itself
FLIGHT_DRAIN, IDLE_DRAIN = 100 / 780, 100 / 7200  # percent per s: 13 minutes of flight
STATE_PORT = 8890

NO_MOTOR = "error Motor stop"
NOT_JOYSTICK = "error Not joystick"
OUT_OF_RANGE = "out of range"

_SWITCHES = ("streamon", "streamoff", "mon", "moff", "motoron", "motoroff", "keepalive")


class SimTello:
    """One drone. ``noise`` scales how much times and ways scatter, drawn with ``seed``;
    ``stop_answer`` is what it says to ``stop`` (``forced stop`` on some firmware); ``sdk`` is the
    version, ``port`` came with 30.

    ``log`` holds what it heard (``<``), said (``>``) and did by itself (``*``), with times.
    """

    def __init__(
        self,
        seed: int = 0,
        battery: float = 100.0,
        noise: float = 1.0,
        stop_answer: str = "ok",
        sdk: int = 30,
    ) -> None:
        self.seed, self.battery, self.stop_answer, self.sdk = seed, battery, stop_answer, sdk
        self.log: deque[tuple[float, str, str]] = deque(maxlen=10_000)
        self.state_port = STATE_PORT
        self.sdk_mode = self.flying = False
        self._faults: list[Fault] = []  # with a time, still to come
        self._waiting: list[Fault] = []  # each for the next motion
        self._chance = Chance(random.Random(seed), noise)
        self._pose = Pose()
        self._motion: Motion | None = None
        self._rc = (0, 0, 0, 0)
        self._speed = 100
        self._now = self._heard = 0.0
        self._in_flight = 0.0  # s, in all
        self._lost_until = -math.inf
        self._outbox: list[tuple[float, str]] = []

    # ---- what the network does -----------------------------------------------------------------

    def receive(self, text: str, now: float) -> None:
        """A datagram has come."""
        self.advance(now)
        command = text.strip()
        if command.startswith("sim "):
            self._sim(command.removeprefix("sim "), now)
            return
        if now < self._lost_until:
            return
        self.log.append((now, "<", command))
        if command == "command":
            self.sdk_mode = True
        elif not self.sdk_mode:
            return  # outside SDK mode the drone is deaf to text
        self._heard = now
        self._obey(command, now)

    def answers(self, now: float) -> list[str]:
        """What it says by ``now``; each is told once."""
        self.advance(now)
        due = [text for at, text in self._outbox if at <= now]
        self._outbox = [(at, text) for at, text in self._outbox if at > now]
        if now < self._lost_until:
            return []
        self.log.extend((now, ">", text) for text in due)
        return due

    def state_line(self, now: float) -> str | None:
        """What it broadcasts ten times a second; None: nothing, or nothing gets through."""
        self.advance(now)
        if not self.sdk_mode or now < self._lost_until:
            return None
        velocity = self._motion.velocity if self._motion else (0.0, 0.0, 0.0)
        return state_line(self.pose(now), velocity, self.battery, self._in_flight)

    def next_event(self) -> float | None:
        """When it has something to say or do by itself at the soonest."""
        times = [at for at, _ in self._outbox] + [fault.at for fault in self._faults]
        return min([*times, *self._own_times()], default=None)

    def inject(self, fault: Fault, now: float) -> None:
        """A fault begins, or is kept for its time where it has one."""
        self.advance(now)
        if fault.at > now:
            self._faults.append(fault)
        else:
            self._begin_fault(fault, now)

    # ---- time ----------------------------------------------------------------------------------

    def pose(self, now: float) -> Pose:
        """Where it is; ``now`` not before what it was told last."""
        return self._motion.pose(now) if self._motion else self._pose

    @property
    def busy(self) -> bool:
        return self._motion is not None

    def advance(self, now: float) -> None:
        """Let everything happen that happens until ``now``, in order."""
        while True:
            times = [*self._own_times(), *(fault.at for fault in self._faults)]
            at = min(times, default=math.inf)
            if at > now:
                break
            self._pass(at)
            self._happen(at)
        self._pass(now)

    def _own_times(self) -> list[float]:
        if self._motion is not None:
            return [self._motion.ends]
        if not self.flying:
            return []
        left = max(0.0, self.battery - EMPTY_BATTERY) / FLIGHT_DRAIN
        return [self._heard + AUTO_LAND, self._now + left]

    def _pass(self, now: float) -> None:
        """Time goes by in which nothing begins or ends."""
        span = max(0.0, now - self._now)
        drain = FLIGHT_DRAIN if self.flying else IDLE_DRAIN
        self.battery = max(0.0, self.battery - drain * span)
        if self.flying:
            self._in_flight += span
        if any(self._rc) and self.flying and self._motion is None:
            left, ahead, up, turn = (value / 100 * span for value in self._rc)
            moved = self._pose.shifted(ahead, -left, up)
            self._pose = replace(moved, yaw=moved.yaw - 100 * turn)
        self._now = max(now, self._now)

    def _happen(self, now: float) -> None:
        due = [fault for fault in self._faults if fault.at <= now]
        self._faults = [fault for fault in self._faults if fault.at > now]
        for fault in due:
            self._begin_fault(fault, now)
        motion = self._motion
        if motion is not None and motion.ends <= now:
            self._arrive(motion, now)
        if self.flying and self._motion is None:
            if now >= self._heard + AUTO_LAND:
                self._event(now, f"lands: {AUTO_LAND:g} s without a command")
                self._land("", now)
            elif self.battery <= EMPTY_BATTERY + 1e-6:
                self._event(now, "lands: the battery is empty")
                self._land("", now)

    def _arrive(self, motion: Motion, now: float) -> None:
        self._pose, self._motion = motion.end, None
        self._heard = max(self._heard, now)  # the silence counts from the end of a command
        if motion.command == "land":
            self.flying = False
            self._event(now, "has landed")
        if motion.answer:
            self._answer(motion.answer, now)

    # ---- commands ------------------------------------------------------------------------------

    def _obey(self, command: str, now: float) -> None:
        name, *arguments = command.split() or [""]
        if name == "rc":
            self._take_rc(arguments)
        elif name.endswith("?"):
            known = readings(self.pose(now), self.battery, self._speed, self._in_flight, self.seed)
            self._say(known.get(name, f"unknown command: {command}"), now)
        elif name == "stop":
            self._stop(now)
        elif name == "emergency":
            self._cut_motors("emergency", now)
            self._say("ok", now)
        elif name == "command" or name in _SWITCHES:
            self._say("ok", now)
        elif name == "speed" or (name == "port" and self.sdk >= 30):
            self._set(name, arguments, now)
        else:
            self._move(command, name, arguments, now)

    def _sim(self, text: str, now: float) -> None:
        """``sim FAULT`` is no command of the SDK: it asks the simulation for a fault, in so many
        s where it has a time. It is heard even while the link is lost, and keeps nothing alive."""
        try:
            fault = parse_fault(text)
        except FaultError as error:
            self._say(f"error {error}", now)
            return
        self._say("ok", now)
        at = now + fault.at if fault.at > 0 else 0.0
        self.inject(replace(fault, at=at), now)

    def _take_rc(self, arguments: list[str]) -> None:
        """No answer, as on the drone."""
        values = [whole(text, -100, 100) for text in arguments]
        if len(values) == 4 and None not in values:
            self._rc = tuple(values)

    def _set(self, name: str, arguments: list[str], now: float) -> None:
        low, high = (10, 100) if name == "speed" else (1025, 65535)
        values = [whole(text, low, high) for text in arguments]
        if len(values) != (1 if name == "speed" else 2) or None in values:
            self._say(OUT_OF_RANGE if values else "error", now)
            return
        if name == "speed":
            self._speed = values[0]
        else:
            self.state_port = values[0]
        self._say("ok", now)

    def _move(self, command: str, name: str, arguments: list[str], now: float) -> None:
        """Whatever moves the drone; what is refused is answered at once."""
        if fault := self._take("error"):
            self._say(fault.text, now)
        elif name == "takeoff":
            self._take_off(now)
        elif name not in ("land", *MOTIONS):
            self._say(f"unknown command: {command}", now)
        elif not self.flying:
            self._say(NO_MOTOR, now)
        elif name == "land":
            self._land("ok", now)
        elif self._motion is not None:
            self._say(NOT_JOYSTICK, now)
        else:
            way = planned(name, arguments, self._pose, self._speed, self._chance)
            if way is None:
                self._say(OUT_OF_RANGE, now)
            else:
                self._begin(command, now, *way)

    def _begin(self, command: str, now: float, duration: float, end: Pose) -> None:
        duration *= max(0.5, 1 + self._chance.scatter(0.02))
        ends, answer = now + duration, "ok"
        if self._take("motor"):
            ends, end, answer = now + duration / 2, self._pose.toward(end, 0.5), ""
            self._faults.append(Fault("cut", at=ends))
        self._motion = Motion(command, now, ends, self._pose, end, answer)

    def _take_off(self, now: float) -> None:
        if self._motion is not None:
            self._say(NOT_JOYSTICK, now)
        elif self.flying:
            self._say("error", now)
        elif self.battery < LOWEST_BATTERY:
            self._say(NO_MOTOR, now)
        else:
            self.flying, self._rc = True, (0, 0, 0, 0)
            self._event(now, "takes off")
            height = TAKEOFF_HEIGHT + self._chance.scatter(0.05)
            self._begin("takeoff", now, TAKEOFF_TIME, replace(self._pose, z=height))

    def _land(self, answer: str, now: float) -> None:
        """Also in the middle of another motion, which is then never answered."""
        pose = self.pose(now)
        self._rc = (0, 0, 0, 0)
        ends = now + 1.0 + pose.z / LANDING_SPEED
        self._pose, self._motion = (
            pose,
            Motion("land", now, ends, pose, replace(pose, z=0.0), answer),
        )

    def _stop(self, now: float) -> None:
        """Hover. The motion that it ends is not answered any more."""
        if self._motion is not None and self._motion.command == "takeoff":
            self._say("error", now)  # it cannot be stopped on its way up
            return
        self._pose, self._motion, self._rc = self.pose(now), None, (0, 0, 0, 0)
        self._say(self.stop_answer if self.flying else "ok", now)

    def _cut_motors(self, why: str, now: float) -> None:
        """It falls."""
        self._event(now, f"motors stopped: {why}")
        pose = self.pose(now)
        self.flying, self._motion, self._pose = False, None, replace(pose, z=0.0)

    # ---- faults and chance ---------------------------------------------------------------------

    def _begin_fault(self, fault: Fault, now: float) -> None:
        match fault.kind:
            case "loss":
                self._lost_until = now + fault.value
                self._event(now, f"link lost for {fault.value:g} s")
            case "battery":
                self.battery = fault.value
                self._event(now, f"battery at {fault.value:g} %")
            case "cut":
                self._cut_motors("fault", now)
                self._say(NO_MOTOR, now)
            case _:
                self._waiting += [fault] * (int(fault.value) if fault.kind == "silence" else 1)

    def _answer(self, text: str, now: float) -> None:
        """The answer to a motion; a fault may keep it back or delay it."""
        fault = self._take("silence", "late")
        if fault is None:
            self._say(text, now)
        elif fault.kind == "late":
            self._say(text, now + fault.value)

    def _take(self, *kinds: str) -> Fault | None:
        """The first fault of these kinds that waits for a motion; it waits no more."""
        for fault in self._waiting:
            if fault.kind in kinds:
                self._waiting.remove(fault)
                return fault
        return None

    def _say(self, text: str, at: float) -> None:
        self._outbox.append((at, text))
        self._outbox.sort(key=lambda entry: entry[0])

    def _event(self, now: float, text: str) -> None:
        self.log.append((now, "*", text))
