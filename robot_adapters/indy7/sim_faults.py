"""Faults of a simulated Indy7 controller: their names, and how they are asked for. Pure."""

from __future__ import annotations

from robot_adapters.simulated.faults import Fault, FaultError, Kind
from robot_adapters.simulated.faults import parse_fault as _parse

__all__ = ["KINDS", "Fault", "FaultError", "parse_fault"]

KINDS = {
    "hang": Kind("for S s calls are carried out, but not answered"),
    "loss": Kind("for S s nothing gets through in either direction"),
    "mute": Kind("the next N moves are carried out, but not answered", 1, 1000, 1),
    "late": Kind("the next move reaches the arm S s late"),
    "reject": Kind("the next move is refused", 1, 1, 1),
    "drop": Kind("the next move is answered as taken, and never begun", 1, 1, 1),
    "short": Kind("the next move ends half-way, without a word", 1, 1, 1),
    "collision": Kind("in the middle of the next move the arm collides", 1, 1, 1),
    "violation": Kind("in the middle of the next move a joint violates its limit", 1, 1, 1),
    "deaf": Kind("the next N stops are neither carried out nor answered", 1, 1000, 1),
    "output": Kind("the next call of the gripper is refused", 1, 1, 1),
    "slip": Kind("the gripper holds nothing when it closes next", 1, 1, 1),
}


def parse_fault(text: str) -> Fault:
    """``KIND``, ``KIND=VALUE``, either with ``@SECONDS``. ``FaultError`` names what is wrong."""
    return _parse(text, KINDS)
