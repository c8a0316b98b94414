"""The one strict reader of YAML and JSON: the classes that a file describes are its schema. Pure
but for ``file_text``.

A schema is a dataclass that derives from ``Entry``; pydantic fills it. The annotation of a field
says what may be written there (``Annotated[float, number(0, 10, " m")]``), ``Entry.checked`` what
must hold between fields. What is wrong is a ``FileError``: ``source:line: field: reason``.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Callable, Collection, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NoReturn, TypeVar, get_type_hints

import yaml
from pydantic import (
    BeforeValidator,
    GetCoreSchemaHandler,
    GetPydanticSchema,
    PlainValidator,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
)
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, core_schema

from timely_llm.validation.names import hint

MAX_BYTES = 1 << 28  # of any file
MAX_TEXT = 262_144  # characters of a YAML file
MAX_KEY = 200  # characters of a key
MAX_DEPTH = 32  # lists and mappings in each other, of a YAML file

_CONSTRUCT_ERRORS = (yaml.YAMLError, ValueError, KeyError, AttributeError, TypeError, OverflowError)
"""What PyYAML raises for values such as ``2001-99-99``, ``!!int x`` and ``!!bool x``."""

Place = tuple[str | int, ...]
"""Keys and indices that lead to a value."""

T = TypeVar("T")
_DECIMAL = re.compile(r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]{1,2})?")


class FileError(ValueError):
    """``source:line: field: reason``; ``line`` counts from 1 (None: not known), ``field`` is empty
    for the whole."""

    def __init__(self, source: str, line: int | None, field: str, reason: str) -> None:
        where = source if line is None else f"{source}:{line}"
        super().__init__(": ".join(filter(None, (where, field, reason))))
        self.source, self.line, self.field, self.reason = source, line, field, reason


class Fault(ValueError):
    """What a check refuses: ``reason``, and ``place`` below the value that was checked.

    With ``key`` the line is that key's in the mapping; with ``first``, a place in the whole
    document, ``{line}`` in the reason is its line.
    """

    def __init__(
        self, reason: str, *place: str | int, key: str = "", first: Place | None = None
    ) -> None:
        super().__init__(reason)
        self.reason, self.place, self.key, self.first = reason, place, key, first


class Entry:
    """A mapping of a file: its fields are the keys, those without a default are required."""

    __slots__ = ()

    def checked(self, context: Any) -> Any:
        """What the entry stands for; raises ``Fault``. ``context`` is what the reader was given."""
        return self

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        known = _keys(cls)

        def fill(value: Any, fields: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
            if not isinstance(value, dict):
                raise _must_be(value, "a mapping")
            for key in value:
                if key not in known:
                    raise Fault(f"unknown key {key!r}{hint(key, known)}", key=key)
            entry: Entry = fields(value)
            return entry.checked(info.context)

        return core_schema.with_info_wrap_validator_function(fill, handler(source))


NOT_IN_FILE = object()
"""Annotates a field of an entry that is no key of the file."""


def described_by(entry: type[Entry]) -> GetPydanticSchema:
    """A field that the file writes as ``entry``, whose ``checked`` gives the field's value."""
    return GetPydanticSchema(lambda _, handler: handler.generate_schema(entry))


def _keys(schema: Any) -> list[str]:
    """The keys of an entry: its fields by name, or by ``Field(alias=...)``."""
    hints = get_type_hints(schema, include_extras=True)
    keys = []
    for field in dataclasses.fields(schema):
        metadata = getattr(hints[field.name], "__metadata__", ())
        aliases = [info.alias for info in metadata if isinstance(info, FieldInfo) and info.alias]
        if NOT_IN_FILE not in metadata:
            keys.append((*aliases, field.name)[0])
    return keys


class _Loader(yaml.SafeLoader):
    """PyYAML looks far ahead in each list and mapping that is open: deep ones take it minutes."""

    def fetch_flow_collection_start(self, token: Any) -> None:
        self._check_depth()
        super().fetch_flow_collection_start(token)

    def add_indent(self, column: int) -> bool:
        self._check_depth()
        return bool(super().add_indent(column))

    def _check_depth(self) -> None:
        if self.flow_level + len(self.indents) >= MAX_DEPTH:
            words = f"is nested too deeply: more than {MAX_DEPTH} lists and mappings"
            raise yaml.MarkedYAMLError(problem=words, problem_mark=self.get_mark())


# ---- what may be written -----------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, slots=True)
class Scalar:
    """A single value of a YAML file: its text, and the node that says its type."""

    text: str
    node: yaml.ScalarNode


def typed(value: Any) -> Any:
    """A single value of the type that it is written as; a whole number fits into 64 bits."""
    if isinstance(value, dict | list):
        raise Fault("must be a single value")
    if not isinstance(value, Scalar):
        return value
    shown = f"is {_shown(value)}"
    try:
        found = yaml.SafeLoader("").construct_object(value.node)
    except _CONSTRUCT_ERRORS:
        raise Fault(f"{shown}: is no value of type {value.node.tag.rpartition(':')[2]}") from None
    if not isinstance(found, bool | int | float | str):
        raise Fault(f"{shown}: must be true, false, a number or a text")
    if isinstance(found, int) and not -(2**63) <= found < 2**63:
        raise Fault(f"{shown}: must fit into 64 bits")
    if isinstance(found, str) and value.node.style is None and _DECIMAL.fullmatch(found):
        return float(found)  # YAML takes 1e3 for a text
    return found


def as_text(value: Any, most: int = 4000, least: int = 1) -> str:
    """A value that is a text of ``least`` to ``most`` characters."""
    found = value.text if isinstance(value, Scalar) else value
    if not isinstance(found, str):
        raise _must_be(value, "a text")
    if not least <= len(found) <= most:
        raise Fault(f"has {len(found)} characters: must have {least} to {most}")
    return found


def text(most: int = 4000, least: int = 1, pattern: str = "", words: str = "") -> PlainValidator:
    """A text of ``least`` to ``most`` characters that matches ``pattern``, in words ``words``."""

    def read(value: Any) -> str:
        found = as_text(value, most, least)
        if pattern and not re.fullmatch(pattern, found):
            raise Fault(f"is {found!r}: must be {words}")
        return found

    return PlainValidator(read)


def number(
    low: float = -math.inf, high: float = math.inf, unit: str = "", scale: float = 1.0
) -> PlainValidator:
    """A finite number from ``low`` to ``high``; gives ``scale`` times what is written."""

    def read(value: Any) -> float:
        found = typed(value)
        if isinstance(found, bool) or not isinstance(found, int | float) or not _finite(found):
            raise _must_be(value, "a finite number")
        _check_limits(found, low, high, unit)
        return float(found) * scale

    return PlainValidator(read)


def whole(low: int, high: float = math.inf) -> PlainValidator:
    """A whole number from ``low`` to ``high``."""

    def read(value: Any) -> int:
        found = typed(value)
        if isinstance(found, bool) or not isinstance(found, int | float) or not _finite(found):
            raise _must_be(value, "a whole number")
        _check_limits(found, low, high)
        if found != int(found):
            raise Fault(f"is {found:g}: must be a whole number")
        return int(found)

    return PlainValidator(read)


def _finite(value: float) -> bool:
    return abs(value) <= 1.7976931348623157e308  # also of whole numbers that no float can hold


def _check_limits(value: float, low: float, high: float, unit: str = "") -> None:
    if not low <= value <= high:
        limits = f"{low:g} to {high:g}" if high < math.inf else f"at least {low:g}"
        raise Fault(f"is {value:g}{unit}: must be {limits}{unit}")


def flag() -> PlainValidator:
    """True or false."""

    def read(value: Any) -> bool:
        found = typed(value)
        if not isinstance(found, bool):
            raise Fault(f"is {found!r}: must be true or false")
        return found

    return PlainValidator(read)


def named(values: Mapping[str, T]) -> PlainValidator:
    """One of the names; gives its value."""

    def read(value: Any) -> T:
        name = as_text(value)
        if name not in values:
            raise Fault(f"{name!r} is unknown{hint(name, values)}")
        return values[name]

    return PlainValidator(read)


def known(names: Callable[[Any], Collection[str]], words: str = "is unknown") -> PlainValidator:
    """One of the names that ``names`` finds in the reader's context."""

    def read(value: Any, info: ValidationInfo) -> str:
        name, allowed = as_text(value), names(info.context)
        if name not in allowed:
            raise Fault(f"{name!r} {words}{hint(name, allowed)}")
        return name

    return PlainValidator(read)


def choice(*names: str) -> PlainValidator:
    """One of the names."""
    return named({name: name for name in names})


def items(least: int = 0, most: int = 10_000) -> BeforeValidator:
    """A list of ``least`` to ``most`` entries, before these are read."""

    def count(value: Any) -> Any:
        if not isinstance(value, list):
            raise _must_be(value, "a list")
        if not least <= len(value) <= most:
            raise Fault(f"has {len(value)} entries: must have {least} to {most}")
        return value

    return BeforeValidator(count)


def _must_be(value: Any, what: str) -> Fault:
    return Fault(f"is {_shown(value)}: must be {what}")


def _shown(value: Any) -> str:
    """A value as its file writes it, not too long."""
    if isinstance(value, Scalar):
        return repr(value.text if len(value.text) <= 80 else f"{value.text[:79]}…")
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    shown = json.dumps(value)
    return shown if len(shown) <= 40 else f"{shown[:37]}..."


# ---- files -------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, slots=True)
class Document:
    """What a text holds, not checked yet. ``root`` knows the lines of a YAML file; ``line`` is that
    of a line of JSON."""

    value: Any
    source: str
    root: yaml.Node | None = None
    line: int | None = None

    def read(self, schema: type[T], context: Any = None) -> T:
        """The document as ``schema`` has it; the first thing wrong is a ``FileError``."""
        try:
            adapter: TypeAdapter[T] = _adapter(schema)
            return adapter.validate_python(self.value, context=context)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            place, fault = first["loc"], first.get("ctx", {}).get("error")
            if first["type"] == "missing":
                place, fault = place[:-1], Fault(f"{place[-1]!r} is missing")
            elif fault is None:
                fault = _must_be(first["input"], "a mapping")
            self.fail(fault if isinstance(fault, Fault) else Fault(str(fault)), place)

    def fail(self, fault: Fault, below: Place = ()) -> NoReturn:
        """A ``FileError`` for what was found at a place below ``below``."""
        place = (*below, *fault.place)
        line = self._line((*place, fault.key) if fault.key else place)
        reason = fault.reason
        if fault.first is not None:
            reason = reason.format(line=self._line(fault.first))
        raise FileError(self.source, line, _field(place), reason)

    def _line(self, place: Place) -> int | None:
        node, line = self.root, self.line
        if node is not None:
            line = node.start_mark.line + 1
        for step in place:
            if isinstance(node, yaml.MappingNode):
                pairs = ((k, v) for k, v in node.value if k.value.strip() == step)
                if (pair := next(pairs, None)) is None:
                    break
                line, node = pair[0].start_mark.line + 1, pair[1]
            elif isinstance(node, yaml.SequenceNode):
                node = node.value[int(step)]
                line = node.start_mark.line + 1
        return line


_adapter: Callable[[Any], TypeAdapter[Any]] = cache(TypeAdapter)


def _field(place: Place) -> str:
    """``robots[0].id``."""
    return "".join(f"[{s}]" if isinstance(s, int) else f".{s}" for s in place).lstrip(".")


def file_text(path: str | Path) -> str:
    """The text of a file. ``OSError`` where it cannot be read; a ``FileError`` names the line where
    it is no UTF-8, and the limit where it is too large."""
    source = str(path)
    with open(path, "rb") as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise FileError(source, None, "", f"is larger than {MAX_BYTES} bytes")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise FileError(source, line, "", "is not UTF-8") from None


def yaml_value(text: str) -> Any:
    """YAML of others, as it is; ``ValueError`` says in a line why it is none."""
    try:
        return yaml.load(text, Loader=_Loader)
    except _CONSTRUCT_ERRORS as error:
        raise ValueError(" ".join(str(error).split())) from None


def json_value(text: str | bytes, hook: Callable[..., Any] | None = None) -> Any:
    """JSON of others, as it is; ``hook`` makes what stands for an object. ``ValueError`` for all
    that is none, or cannot be read."""
    try:
        return json.loads(text, object_pairs_hook=hook)
    except RecursionError:
        raise ValueError("is nested too deeply") from None


def json_object(text: str | bytes) -> dict[str, Any]:
    """As ``json_value``, of an object; ``ValueError`` says what it is instead."""
    try:
        value = json_value(text)
    except ValueError as error:
        raise ValueError(f"is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise ValueError("is not a JSON object")
    return value


def parse_json(text: str, source: str, line: int | None = None) -> Document:
    """JSON without keys given twice; ``line`` is its place in a file of JSON Lines."""
    try:
        return Document(json_value(text, _unique), source, None, line)
    except json.JSONDecodeError as error:
        line = line or error.lineno
        reason = f"is not JSON: {error.msg}, column {error.colno}"
    except Fault as fault:
        reason = fault.reason
    except ValueError as error:  # a number of too many digits; nested too deeply
        reason = f"is not JSON that can be read: {error}"
    raise FileError(source, line, "", reason)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entry = dict(pairs)
    if len(entry) < len(pairs):
        keys = [key for key, _ in pairs]
        raise Fault(f"key {next(k for k in keys if keys.count(k) > 1)!r} is given twice")
    return entry


def parse_yaml(text: str, source: str, most: int = MAX_TEXT) -> Document:
    """YAML without keys given twice, of at most ``most`` characters."""
    if len(text) > most:
        raise FileError(source, 1, "", f"has {len(text)} characters: must have at most {most}")
    line = 1
    try:
        root = yaml.compose(text, Loader=_Loader)
        if root is None:
            raise FileError(source, 1, "", "is empty")
        return Document(_tree(root, (), source, {}), source, root)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        reason = f"is not YAML: {error.problem or error.context}"
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        reason = f"is not YAML: {error.reason}"
    except FileError:
        raise
    except (ValueError, OverflowError) as error:  # a character or a version that cannot be
        reason = f"is not YAML: {error}"
    raise FileError(source, line, "", reason)


def _tree(node: yaml.Node, place: Place, source: str, known: dict[int, Any]) -> Any:
    """The values below a node. What an alias names twice is the same value twice."""
    if id(node) in known:
        return known[id(node)]
    if isinstance(node, yaml.ScalarNode):
        return Scalar(node.value.strip(), node)
    if isinstance(node, yaml.SequenceNode):
        entries: list[Any] = []
        known[id(node)] = entries
        entries += [_tree(n, (*place, i), source, known) for i, n in enumerate(node.value)]
        return entries
    found: dict[str, Any] = {}
    known[id(node)] = found
    for key, value in node.value:
        line = key.start_mark.line + 1
        name = key.value.strip() if isinstance(key, yaml.ScalarNode) else ""
        if not 1 <= len(name) <= MAX_KEY:
            raise FileError(
                source, line, _field(place), f"a key must be a text of 1 to {MAX_KEY} characters"
            )
        if name in found:
            raise FileError(source, line, _field(place), f"key {name!r} is given twice")
        found[name] = _tree(value, (*place, name), source, known)
    return found
