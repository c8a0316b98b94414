"""Parameters as people write them, and the types that they are of."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import rclpy
from rclpy.context import Context
from rclpy.node import Node
from rclpy.parameter import Parameter as Given

from timely_llm.ros.declare import Parameter, ParameterError, declare


@pytest.fixture
def declared(domain: int) -> Iterator[Callable[[Any, Any], Any]]:
    """The value of a parameter with this default, where that is given."""
    context = Context()
    rclpy.init(context=context)
    nodes: list[Node] = []

    def value(default: Any, given: Any) -> Any:
        overrides = [Given("it", value=given)]
        node = Node("declaring", context=context, parameter_overrides=overrides)
        nodes.append(node)
        return declare(node, {"it": Parameter(default, "what it is")})["it"]

    yield value
    for node in nodes:
        node.destroy_node()
    rclpy.shutdown(context=context)


@pytest.mark.parametrize(
    ("default", "given", "value"),
    [
        (2.0, 3, 3.0),  # -p stop_timeout:=3
        ("", 8088, "8088"),  # -p web:=8088
        ("", "8088", "8088"),
        (3, 4, 4),
        (True, False, False),
    ],
)
def test_whole_numbers_do_for_floats_and_texts(declared, default, given, value) -> None:
    found = declared(default, given)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(("default", "given"), [(3, 4.5), ("", True), (True, 1), (3, "4")])
def test_other_types_are_refused_by_name(declared, default, given) -> None:
    with pytest.raises(ParameterError, match=r"parameter 'it': is .*: must be a .* \(what it is\)"):
        declared(default, given)
