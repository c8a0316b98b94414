"""Reads YAML files strictly: every fault is a ``YamlError`` with line, field and reason. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NoReturn

import yaml

from timely_llm.validation.names import hint

MAX_TEXT = 262_144  # characters of a file

CONSTRUCT_ERRORS = (
    *(yaml.YAMLError, ValueError, KeyError, AttributeError, TypeError, OverflowError),
    RecursionError,
)
"""What PyYAML raises for values such as ``2001-99-99``, ``!!int x`` and ``!!bool x``."""


class YamlError(ValueError):
    """``source:line: field: reason``."""

    def __init__(self, source: str, line: int, field: str, reason: str) -> None:
        super().__init__(f"{source}:{line}: {field}: {reason}" if field else
                         f"{source}:{line}: {reason}")  # fmt: skip
        self.source, self.line, self.field, self.reason = source, line, field, reason


def decoded(data: bytes, source: str) -> str:
    """The text of a file's bytes; ``source`` names it in the ``YamlError`` where it is no UTF-8."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise YamlError(source, line, "", "is not UTF-8") from None


class Node:
    """A YAML node with its place. Reading it as something that it is not fails with the line."""

    def __init__(self, node: yaml.Node, source: str, field: str = "", line: int = 0) -> None:
        self.node, self.source, self.field = node, source, field
        self.line = line or node.start_mark.line + 1

    def fail(self, reason: str) -> NoReturn:
        raise YamlError(self.source, self.line, self.field, reason)

    def mapping(self, keys: Iterable[str] | None, required: Iterable[str] = ()) -> dict[str, Node]:
        """The entries by key; ``keys`` None takes any key."""
        if not isinstance(self.node, yaml.MappingNode):
            self.fail("must be a mapping")
        known = None if keys is None else list(keys)
        entries: dict[str, Node] = {}
        for key_node, value_node in self.node.value:
            key = Node(key_node, self.source, self.field)
            name = key.text(200)
            if known is not None and name not in known:
                key.fail(f"unknown key {name!r}{hint(name, known)}")
            if name in entries:
                key.fail(f"key {name!r} is given twice")
            field = f"{self.field}.{name}".lstrip(".")
            entries[name] = Node(value_node, self.source, field, key.line)
        for name in required:
            if name not in entries:
                self.fail(f"{name!r} is missing")
        return entries

    def items(self, minimum: int = 0, maximum: int = 10_000) -> list[Node]:
        if not isinstance(self.node, yaml.SequenceNode):
            self.fail("must be a list")
        count = len(self.node.value)
        if not minimum <= count <= maximum:
            self.fail(f"has {count} entries: must have {minimum} to {maximum}")
        return [
            Node(node, self.source, f"{self.field}[{i}]") for i, node in enumerate(self.node.value)
        ]

    def text(self, maximum: int = 4000, minimum: int = 1) -> str:
        if not isinstance(self.node, yaml.ScalarNode):
            self.fail("must be a text")
        text = self.node.value.strip()
        if not minimum <= len(text) <= maximum:
            self.fail(f"has {len(text)} characters: must have {minimum} to {maximum}")
        return text

    def choice(self, choices: Iterable[str]) -> str:
        text, known = self.text(), list(choices)
        if text not in known:
            self.fail(f"{text!r} is unknown{hint(text, known)}")
        return text

    def number(self, low: float, high: float, unit: str = "") -> float:
        value = self.scalar()
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not math.isfinite(value)
        ):
            self.fail(f"is {self.text(0xFFFF, 0)!r}: must be a finite number")
        if not low <= value <= high:
            self.fail(f"is {value:g}{unit}: must be {low:g} to {high:g}{unit}")
        return float(value)

    def whole(self, low: int, high: int) -> int:
        value = self.number(low, high)
        if not value.is_integer():
            self.fail(f"is {value:g}: must be a whole number")
        return int(value)

    def scalar(self) -> bool | int | float | str:
        """A single value of the type that it is written as; a whole number fits into 64 bits."""
        if not isinstance(self.node, yaml.ScalarNode):
            self.fail("must be a single value")
        shown = f"is {_short(self.node.value)!r}"
        try:
            value = yaml.SafeLoader("").construct_object(self.node)
        except CONSTRUCT_ERRORS:
            self.fail(f"{shown}: is no value of type {self.node.tag.rpartition(':')[2]}")
        if not isinstance(value, bool | int | float | str):
            self.fail(f"{shown}: must be true, false, a number or a text")
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            self.fail(f"{shown}: must fit into 64 bits")
        return value


def _short(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:79]}…"


def read(text: str, source: str) -> Node:
    """The root of a YAML text; ``source`` names it in errors."""
    if len(text) > MAX_TEXT:
        raise YamlError(source, 1, "", f"has {len(text)} characters: at most {MAX_TEXT}")
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise YamlError(
            source, line, "", f"is not YAML: {error.problem or error.context}"
        ) from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise YamlError(source, line, "", f"is not YAML: {error.reason}") from error
    except RecursionError as error:
        raise YamlError(source, 1, "", "is nested too deeply") from error
    except (ValueError, OverflowError) as error:  # a character or a version that cannot be
        raise YamlError(source, 1, "", f"is not YAML: {error}") from error
    if node is None:
        raise YamlError(source, 1, "", "is empty")
    return Node(node, source)
