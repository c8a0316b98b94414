"""Declaring a node's parameters from a table: types, ranges, descriptors, and no unknown names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor
from rclpy.node import Node
from rclpy.parameter import Parameter as RosParameter

from timely_llm.validation.names import hint

_OF_ROS = ("use_sim_time", "qos_overrides", "start_type_description_service")


class ParameterError(ValueError):
    """A parameter that is unknown or out of its range; the text names it."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """``default`` also gives the type; ``range`` is inclusive; the unit ends the description."""

    default: Any
    description: str
    range: tuple[float, float] | None = None

    def descriptor(self) -> ParameterDescriptor:
        """What ``ros2 param describe`` shows; the parameter cannot be changed at run time."""
        descriptor = ParameterDescriptor(description=self.description, read_only=True)
        if self.range and isinstance(self.default, int):
            whole = IntegerRange(from_value=int(self.range[0]), to_value=int(self.range[1]))
            descriptor.integer_range = [whole]
        elif self.range:
            real = FloatingPointRange(
                from_value=float(self.range[0]), to_value=float(self.range[1])
            )
            descriptor.floating_point_range = [real]
        return descriptor


def declare(node: Node, parameters: Mapping[str, Parameter]) -> dict[str, Any]:
    """Declare the parameters on ``node``; returns their values. ``ParameterError`` for a value of
    the wrong type or out of its range. A whole number will do where a float is wanted, or a text:
    ``web:=8088``."""
    values = {}
    for name, parameter in parameters.items():
        given, wanted = node._parameter_overrides.get(name), type(parameter.default)
        if given is not None and type(given.value) is int and wanted in (float, str):
            node._parameter_overrides[name] = RosParameter(name, value=wanted(given.value))
        try:
            values[name] = node.declare_parameter(
                name, parameter.default, parameter.descriptor()
            ).value
        except Exception as error:  # rclpy has an exception of its own for each kind of mistake
            raise ParameterError(f"parameter {name!r}: {_reason(parameter, given)}") from error
    return values


def _reason(parameter: Parameter, given: RosParameter | None) -> str:
    value = None if given is None else given.value
    wanted = type(parameter.default).__name__
    if parameter.range:
        wanted += f" from {parameter.range[0]:g} to {parameter.range[1]:g}"
    return f"is {value!r}: must be a {wanted} ({parameter.description})"


def refuse_unknown(node: Node, known: Iterable[str]) -> None:
    """``ParameterError`` for a given parameter that the node does not have, with the nearest known
    name: rclpy keeps unknown ones to itself, and a typing error must not pass silently."""
    known = tuple(known)
    for name in node._parameter_overrides:
        if name not in known and not name.startswith(_OF_ROS):
            raise ParameterError(f"parameter {name!r} is unknown{hint(name, known)}")
