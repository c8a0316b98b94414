"""A simulated Ryze Tello: what the drone makes of the SDK's text commands. Pure.

Time comes in as ``now`` in s; ``udp_simulator.py`` puts the drone on the network. Commands, answers
and the state line are those of the Tello SDK 2.0 (and ``port`` of 3.0); execution times are those
measured for TimelyLLM. Positions are m from where it was switched on, x ahead, y left, yaw
counterclockwise.
"""

from __future__ import annotations

import math
import random
import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace

from robot_adapters.perception import Pose
from robot_adapters.simulated.faults import Fault, FaultError, Kind, PendingFaults, parse_fault

AUTO_LAND = 15.0  # s without a command (SDK 2.0, Safety feature)
TAKEOFF_TIME, TAKEOFF_HEIGHT = 3.5, 0.8  # s, m
CEILING = 30.0  # m
LANDING_SPEED = 0.5  # m/s
LOWEST_BATTERY = 10.0  # percent; below, the motors do not start
EMPTY_BATTERY = 4.0  # percent; below, it lands by itself
FLIGHT_DRAIN, IDLE_DRAIN = 100 / 780, 100 / 7200  # percent per s: 13 minutes of flight
STATE_PORT = 8890

NO_MOTOR = "error Motor stop"
NOT_JOYSTICK = "error Not joystick"
OUT_OF_RANGE = "out of range"

KINDS = {
    "silence": Kind("the next N motions are carried out, but not answered", 1, 1000, 1),
    "late": Kind("the next motion is answered S s late", default=None),
    "twice": Kind("the next motion is answered again, S s after it", default=None),
    "lie": Kind("the next motion is answered by an error, and carried out", 1, 1, 1),
    "joystick": Kind("the next motion is refused: error Not joystick", 1, 1, 1),
    "imu": Kind("the next motion is refused: error No valid imu", 1, 1, 1),
    "motor": Kind("in the middle of the next motion the motors stop", 1, 1, 1),
    "loss": Kind("for S s nothing gets through in either direction", default=None),
    "battery": Kind("the battery is at P percent", 0, 100, None),
}
_REFUSALS = {"joystick": NOT_JOYSTICK, "imu": "error No valid imu"}  # by kind of fault

#: Direction (ahead, left, up) of a move.
_SHIFTS = {
    "forward": (1, 0, 0),
    "back": (-1, 0, 0),
    "left": (0, 1, 0),
    "right": (0, -1, 0),
    "up": (0, 0, 1),
    "down": (0, 0, -1),
}
_TURNS = {"cw": -1, "ccw": 1}
_FLIPS = ("l", "r", "f", "b")
_MOTIONS = ("flip", "go", *_SHIFTS, *_TURNS)
_SWITCHES = ("command", "streamon", "streamoff", "mon", "moff", "motoron", "motoroff", "keepalive")
_WHOLE = re.compile(r"-?[0-9]+")


@dataclass(frozen=True, slots=True)
class Motion:
    """A command being carried out; ``answer`` is sent when it is done, unless it is empty."""

    command: str
    started: float
    ends: float
    start: Pose
    end: Pose
    answer: str = "ok"

    def pose(self, now: float) -> Pose:
        """Where it is on its way."""
        if now >= self.ends:
            return self.end
        return self.start.toward(self.end, (now - self.started) / (self.ends - self.started))

    @property
    def velocity(self) -> tuple[float, ...]:
        """m/s along x, y, z."""
        pairs = zip(self.start.point, self.end.point, strict=True)
        return tuple((b - a) / (self.ends - self.started) for a, b in pairs)


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
        self._faults = PendingFaults()
        self._rng, self._noise = random.Random(seed), noise
        self._pose = Pose()
        self._motion: Motion | None = None
        self._rc: Sequence[int] = (0, 0, 0, 0)
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
            self._ask_for_fault(command.removeprefix("sim "), now)
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
        """What it says by ``now``; each answer once."""
        self.advance(now)
        due = [text for at, text in self._outbox if at <= now]
        self._outbox = [(at, text) for at, text in self._outbox if at > now]
        if now < self._lost_until:
            return []
        self.log.extend((now, ">", text) for text in due)
        return due

    def state_line(self, now: float) -> str | None:
        """What it broadcasts ten times a second (SDK 2.0, Tello State); None: nothing, or nothing
        gets through."""
        self.advance(now)
        if not self.sdk_mode or now < self._lost_until:
            return None
        pose = self.pose(now)
        velocity = self._motion.velocity if self._motion else (0.0, 0.0, 0.0)
        vx, vy, vz = (round(10 * speed) for speed in velocity)
        fields = {
            "mid": -1, "x": -100, "y": -100, "z": -100, "mpry": "0,0,0",
            "pitch": 0, "roll": 0, "yaw": _clockwise(pose), "vgx": vx, "vgy": vy, "vgz": vz,
            "templ": 60, "temph": 63, "tof": max(10, round(100 * pose.z)),
            "h": round(pose.z * 10) * 10, "bat": math.floor(self.battery),
            "baro": f"{100 + pose.z:.2f}", "time": int(self._in_flight),
            "agx": "0.00", "agy": "0.00", "agz": "-1000.00",
        }  # fmt: skip
        return "".join(f"{name}:{value};" for name, value in fields.items()) + "\r\n"

    def next_event(self) -> float | None:
        """When it has something to say or do by itself at the soonest, in s."""
        return min([*(at for at, _ in self._outbox), *self._times()], default=None)

    def inject(self, fault: Fault, now: float) -> None:
        """A fault begins, now or at its time."""
        self.advance(now)
        self._faults.schedule(fault, now)
        self.advance(now)

    # ---- time ----------------------------------------------------------------------------------

    def pose(self, now: float) -> Pose:
        """Where it is; ``now`` must not be before the last call's."""
        return self._motion.pose(now) if self._motion else self._pose

    @property
    def busy(self) -> bool:
        """Whether a motion is in progress."""
        return self._motion is not None

    def advance(self, now: float) -> None:
        """Let everything happen that happens until ``now``, in order."""
        while (at := min(self._times(), default=math.inf)) <= now:
            self._pass(at)
            self._happen(at)
        self._pass(now)

    def _times(self) -> list[float]:
        """When something begins or ends by itself."""
        times = self._faults.times
        if self._motion is not None:
            times.append(self._motion.ends)
        elif self.flying:
            left = max(0.0, self.battery - EMPTY_BATTERY) / FLIGHT_DRAIN
            times += [self._heard + AUTO_LAND, self._now + left]
        return times

    def _pass(self, now: float) -> None:
        """Time goes by in which nothing begins or ends."""
        span = max(0.0, now - self._now)
        drain = FLIGHT_DRAIN if self.flying else IDLE_DRAIN
        self.battery = max(0.0, self.battery - drain * span)
        if self.flying:
            self._in_flight += span
            if any(self._rc) and self._motion is None:
                left, ahead, up, turn = (value / 100 * span for value in self._rc)
                moved = _shifted(self._pose, ahead, -left, up)
                self._pose = replace(moved, yaw=moved.yaw - 100 * turn)
        self._now = max(now, self._now)

    def _happen(self, now: float) -> None:
        for fault in self._faults.due(now):
            self._begin_fault(fault, now)
        if self._motion is not None and self._motion.ends <= now:
            self._arrive(self._motion, now)
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
        if name == "rc":  # never answered, as on the drone
            self._rc = _whole(arguments, *[(-100, 100)] * 4) or self._rc
        elif name.endswith("?"):
            self._say(self._readings(now).get(name, f"unknown command: {command}"), now)
        elif name == "stop":
            self._stop(now)
        elif name == "emergency":
            self._cut_motors("emergency", now)
            self._say("ok", now)
        elif name in _SWITCHES:
            self._say("ok", now)
        elif name == "speed" or (name == "port" and self.sdk >= 30):
            self._set(name, arguments, now)
        else:
            self._move(command, name, arguments, now)

    def _readings(self, now: float) -> dict[str, str]:
        """Answers by command."""
        pose = self.pose(now)
        return {
            "battery?": f"{math.floor(self.battery)}",
            "speed?": f"{self._speed:.1f}",
            "time?": f"{int(self._in_flight)}s",
            "height?": f"{round(pose.z * 10)}dm",
            "temp?": "60~63C",
            "attitude?": f"pitch:0;roll:0;yaw:{_clockwise(pose)};",
            "baro?": f"{100 + pose.z:.2f}",
            "tof?": f"{max(100, round(1000 * pose.z))}mm",
            "wifi?": "90",
            "sdk?": "20",
            "sn?": f"0TQSIM{self.seed:08d}",
        }

    def _ask_for_fault(self, text: str, now: float) -> None:
        """``sim FAULT`` is no command of the SDK: it asks the simulation for a fault, in so many
        s where it has a time. It is heard even while the link is lost, and keeps nothing alive."""
        try:
            fault = parse_fault(text, KINDS)
        except FaultError as error:
            self._say(f"error {error}", now)
            return
        self._say("ok", now)
        self.inject(replace(fault, at=now + fault.at), now)

    def _set(self, name: str, arguments: list[str], now: float) -> None:
        limits = [(10, 100)] if name == "speed" else [(1025, 65535)] * 2
        values = _whole(arguments, *limits)
        if values is None:
            self._say(OUT_OF_RANGE if arguments else "error", now)
            return
        if name == "speed":
            self._speed = values[0]
        else:
            self.state_port = values[0]
        self._say("ok", now)

    def _move(self, command: str, name: str, arguments: list[str], now: float) -> None:
        """Whatever moves the drone; what is refused is answered at once."""
        if fault := self._faults.take(*_REFUSALS):
            self._say(_REFUSALS[fault.kind], now)
        elif name == "takeoff":
            self._take_off(now)
        elif name not in ("land", *_MOTIONS):
            self._say(f"unknown command: {command}", now)
        elif not self.flying:
            self._say(NO_MOTOR, now)
        elif name == "land":
            self._land("ok", now)
        elif self._motion is not None:
            self._say(NOT_JOYSTICK, now)
        elif (way := self._way(name, arguments)) is None:
            self._say(OUT_OF_RANGE, now)
        else:
            self._begin(command, now, *way)

    def _way(self, name: str, arguments: list[str]) -> tuple[float, Pose] | None:
        """How long a motion takes in s, and where it leads; None: an argument is out of range."""
        if name == "flip":
            return (1.5, self._pose) if arguments and arguments[0] in _FLIPS else None
        if name == "go":
            return self._way_to(arguments)
        values = _whole(arguments, (20, 500) if name in _SHIFTS else (1, 360))
        if values is None:
            return None
        value = values[0]
        if name in _TURNS:
            yaw = self._pose.yaw + _TURNS[name] * (value + self._scatter(1.0))
            return 0.784 + 0.0165 * value, replace(self._pose, yaw=yaw)
        ahead, left, up = (value / 100 * share for share in _SHIFTS[name])
        if up:
            duration = 1.3195 + 0.0388 * value - 0.0003 * value**2 + 8.0e-7 * value**3
        else:
            duration = 1.8144 + 0.72 / self._speed * value
        return duration, self._scattered(_shifted(self._pose, ahead, left, up), value / 100)

    def _way_to(self, arguments: list[str]) -> tuple[float, Pose] | None:
        values = _whole(arguments, *[(-500, 500)] * 3, (10, 100))
        if values is None or all(abs(value) < 20 for value in values[:3]):
            return None
        x, y, z, speed = values
        way, end = math.hypot(x, y, z), _shifted(self._pose, x / 100, y / 100, z / 100)
        return 1.0 + way / speed, self._scattered(end, way / 100)

    def _begin(self, command: str, now: float, duration: float, end: Pose) -> None:
        duration *= max(0.5, 1 + self._scatter(0.02))
        ends, answer = now + duration, "ok"
        if self._faults.take("motor"):
            ends, end, answer = now + duration / 2, self._pose.toward(end, 0.5), ""
            self._faults.schedule(Fault("cut", at=ends), now)
        if self._faults.take("lie"):
            self._say("error", now)
            answer = ""
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
            height = TAKEOFF_HEIGHT + self._scatter(0.05)
            self._begin("takeoff", now, TAKEOFF_TIME, replace(self._pose, z=height))

    def _land(self, answer: str, now: float) -> None:
        """Also in the middle of another motion, which is then never answered."""
        self._pose = pose = self.pose(now)
        self._rc = (0, 0, 0, 0)
        ends = now + 1.0 + pose.z / LANDING_SPEED
        self._motion = Motion("land", now, ends, pose, replace(pose, z=0.0), answer)

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
                self._faults.wait(fault, int(fault.value) if fault.kind == "silence" else 1)

    def _answer(self, text: str, now: float) -> None:
        """The answer to a motion; a fault may keep it back, delay or double it."""
        fault = self._faults.take("silence", "late", "twice")
        if fault is None or fault.kind == "twice":
            self._say(text, now)
        if fault is not None and fault.kind != "silence":
            self._say(text, now + fault.value)

    def _scatter(self, deviation: float) -> float:
        return self._noise * max(-3.0, min(3.0, self._rng.gauss(0.0, 1.0))) * deviation

    def _scattered(self, end: Pose, way: float) -> Pose:
        """The end of a way of so many m, as it is reached."""
        x, y = end.x + self._scatter(0.02 * way), end.y + self._scatter(0.02 * way)
        return replace(end, x=x, y=y, z=max(0.0, end.z + self._scatter(0.01)))

    def _say(self, text: str, at: float) -> None:
        self._outbox.append((at, text))
        self._outbox.sort(key=lambda entry: entry[0])

    def _event(self, now: float, text: str) -> None:
        self.log.append((now, "*", text))


def _clockwise(pose: Pose) -> int:
    """The yaw as the drone tells it, -180 to 180 degrees."""
    return -round((pose.yaw + 180) % 360 - 180)


def _shifted(pose: Pose, ahead: float, left: float, up: float) -> Pose:
    moved = pose.moved(ahead, left, up)
    return replace(moved, z=min(CEILING, max(0.0, moved.z)))


def _whole(texts: Sequence[str], *limits: tuple[int, int]) -> list[int] | None:
    """The whole numbers, if there are as many as limits and each is within its own."""
    if len(texts) != len(limits) or not all(map(_WHOLE.fullmatch, texts)):
        return None
    values = [int(text) for text in texts]
    pairs = zip(values, limits, strict=True)
    return values if all(low <= value <= high for value, (low, high) in pairs) else None
