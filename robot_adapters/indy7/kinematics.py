"""The arm of a simulated Indy7: where it is, and how long it takes to get elsewhere. Pure.

Six joints in deg, the tool in mm and deg (fixed angles about x, y, z), as the controller has them.
Lengths of the links are the Indy7's; its joints' sideways offsets are left out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

BASE, UPPER, FORE, HAND = 300.0, 450.0, 350.0, 228.0  # mm
LIMITS = (175.0, 175.0, 175.0, 175.0, 175.0, 215.0)  # deg, either way
JOINT_SPEED, JOINT_ACCELERATION = 150.0, 400.0  # deg/s, deg/s^2 at 100 %
TOOL_SPEED, TOOL_ACCELERATION = 1000.0, 2500.0  # mm/s, mm/s^2 at 100 %
HOME = (0.0, -10.0, 110.0, 0.0, 80.0, 0.0)

Joints = tuple[float, ...]
Matrix = tuple[tuple[float, ...], ...]

FLANGE: Matrix = ((-1, 0, 0), (0, -1, 0), (0, 0, 1))  # the tool is mounted half a turn round


class Unreachable(ValueError):
    """No joint angles put the tool there."""


@dataclass(frozen=True, slots=True)
class Way:
    """A motion of ``duration`` s from ``begin`` to ``end`` joints; straight: the tool's is."""

    begin: Joints
    end: Joints
    duration: float
    straight: bool = False

    def at(self, share: float) -> Joints:
        """The joints when ``share`` (0 to 1) of its time is over; a straight way that leaves the
        arm's reach on its way raises ``Unreachable``."""
        s = smooth(min(1.0, max(0.0, share)))
        if not self.straight or s in (0.0, 1.0):
            return tuple(a + (b - a) * s for a, b in zip(self.begin, self.end, strict=True))
        a, b = tool(self.begin), tool(self.end)
        turned = [x + (((y - x) + 180) % 360 - 180) * s for x, y in zip(a[3:], b[3:], strict=True)]
        point = [x + (y - x) * s for x, y in zip(a[:3], b[:3], strict=True)]
        return joints_for((*point, *turned), self.begin)


def smooth(share: float) -> float:
    """How far a motion is, with a soft start and end."""
    return share * share * (3 - 2 * share)


def joint_way(begin: Joints, end: Joints, speed: float, acceleration: float) -> Way:
    """``speed`` and ``acceleration`` in percent."""
    span = max(abs(b - a) for a, b in zip(begin, end, strict=True))
    v, a = JOINT_SPEED * speed / 100, JOINT_ACCELERATION * acceleration / 100
    return Way(begin, end, _time(span, v, a))


def straight_way(begin: Joints, end: Joints, speed: float, acceleration: float) -> Way:
    """Refuses, with ``Unreachable``, a line that leaves the reach."""
    span = math.dist(tool(begin)[:3], tool(end)[:3])
    v, a = TOOL_SPEED * speed / 100, TOOL_ACCELERATION * acceleration / 100
    turn = max(abs(y - x) for x, y in zip(begin, end, strict=True)) / JOINT_SPEED
    way = Way(begin, end, max(_time(span, v, a), turn), straight=True)
    for i in range(1, 20):
        way.at(i / 20)
    return way


def _time(span: float, speed: float, acceleration: float) -> float:
    """s for a trapezoid of speed."""
    if span <= 0:
        return 0.0
    if span < speed * speed / acceleration:
        return 2 * math.sqrt(span / acceleration)
    return span / speed + speed / acceleration


def tool(joints: Sequence[float]) -> tuple[float, ...]:
    """Forward kinematics: x, y, z in mm, u, v, w in deg."""
    q = [math.radians(angle) for angle in joints]
    arm = _product(_about_z(q[0]), _about_y(q[1]))
    fore = _product(arm, _about_y(q[2]))
    hand = _product(fore, _product(_about_z(q[3]), _product(_about_y(q[4]), _about_z(q[5]))))
    point = [UPPER * arm[i][2] + FORE * fore[i][2] + HAND * hand[i][2] for i in range(3)]
    return (point[0], point[1], BASE + point[2], *_angles(_product(hand, FLANGE)))


def joints_for(pose: Sequence[float], near: Sequence[float]) -> Joints:
    """Inverse kinematics, elbow up, wrist on the side of ``near``; ``Unreachable`` says why not."""
    u, v, w = (math.radians(angle) for angle in pose[3:])
    hand = _product(_about_z(w), _product(_about_y(v), _about_x(u)))
    hand = _product(hand, FLANGE)
    x, y, z = (pose[i] - HAND * hand[i][2] for i in range(3))
    q1 = math.atan2(y, x) if math.hypot(x, y) > 1e-6 else math.radians(near[0])
    level, height = math.hypot(x, y), z - BASE
    cosine = (level**2 + height**2 - UPPER**2 - FORE**2) / (2 * UPPER * FORE)
    if not -1 <= cosine <= 1:
        raise Unreachable(
            f"the wrist would be {math.hypot(level, height):.0f} mm from the shoulder"
        )
    q3 = math.acos(cosine)
    q2 = math.atan2(level, height) - math.atan2(FORE * math.sin(q3), UPPER + FORE * math.cos(q3))
    fore = _product(_about_z(q1), _about_y(q2 + q3))
    wrist = _product(tuple(zip(*fore, strict=True)), hand)
    found, faults = [], []
    for bend in (1.0, -1.0):
        angles = (q1, q2, q3, *_wrist(wrist, bend, math.radians(near[3])))
        degrees = [math.degrees(angle) for angle in angles]
        turned = [_turned(a, b, m) for a, b, m in zip(degrees, near, LIMITS, strict=True)]
        try:
            found.append(within_limits(turned))
        except Unreachable as fault:
            faults.append(fault)
    if not found:
        raise faults[0]
    return min(found, key=lambda q: max(abs(a - b) for a, b in zip(q, near, strict=True)))


def _wrist(wrist: Matrix, bend: float, q4: float) -> tuple[float, float, float]:
    """The last three joints for a rotation, bent to one side; stretched out, ``q4`` is kept."""
    q5 = bend * math.acos(max(-1.0, min(1.0, wrist[2][2])))
    if abs(math.sin(q5)) < 1e-6:
        turn = math.atan2(wrist[1][0], wrist[0][0])
        return q4, q5, turn - math.copysign(q4, wrist[2][2])
    q4 = math.atan2(bend * wrist[1][2], bend * wrist[0][2])
    return q4, q5, math.atan2(bend * wrist[2][1], -bend * wrist[2][0])


def within_limits(joints: Sequence[float]) -> Joints:
    """The joints; ``Unreachable`` names the first that is beyond its limit."""
    for number, (angle, limit) in enumerate(zip(joints, LIMITS, strict=True), 1):
        if not abs(angle) <= limit + 1e-6:  # refuses NaN too
            raise Unreachable(f"joint {number} would be {angle:.1f} deg, limit {limit:g}")
    return tuple(joints)


def _turned(angle: float, near: float, limit: float) -> float:
    """The same angle, a whole turn away where that is nearer and within the limit."""
    choices = [c for c in (angle - 360, angle, angle + 360) if abs(c) <= limit] or [angle]
    return min(choices, key=lambda choice: abs(choice - near))


def _about_x(a: float) -> Matrix:
    return ((1, 0, 0), (0, math.cos(a), -math.sin(a)), (0, math.sin(a), math.cos(a)))


def _about_y(a: float) -> Matrix:
    return ((math.cos(a), 0, math.sin(a)), (0, 1, 0), (-math.sin(a), 0, math.cos(a)))


def _about_z(a: float) -> Matrix:
    return ((math.cos(a), -math.sin(a), 0), (math.sin(a), math.cos(a), 0), (0, 0, 1))


def _product(a: Matrix, b: Matrix) -> Matrix:
    return tuple(
        tuple(sum(a[i][k] * b[k][j] for k in range(3)) for j in range(3)) for i in range(3)
    )


def _angles(r: Matrix) -> tuple[float, float, float]:
    """u, v, w of a rotation."""
    level = math.hypot(r[0][0], r[1][0])
    v = math.atan2(-r[2][0], level)
    if level < 1e-9:
        return math.degrees(math.atan2(-r[1][2], r[1][1])), math.degrees(v), 0.0
    u, w = math.atan2(r[2][1], r[2][2]), math.atan2(r[1][0], r[0][0])
    return math.degrees(u), math.degrees(v), math.degrees(w)
