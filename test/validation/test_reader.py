"""The reader of files: what a schema takes, and where it says that something is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

import pytest
from pydantic import Field

from timely_llm.validation import reader
from timely_llm.validation.reader import (
    NOT_IN_FILE,
    Entry,
    Fault,
    FileError,
    choice,
    described_by,
    file_text,
    flag,
    items,
    json_object,
    known,
    named,
    number,
    parse_json,
    parse_yaml,
    text,
    whole,
    yaml_value,
)


@dataclass(frozen=True, slots=True)
class Span(Entry):
    low: Annotated[float, number(0, 10, " m")]
    high: Annotated[float, number(0, 10, " m")] = 10.0

    def checked(self, context: object) -> tuple[float, float]:
        if self.low > self.high:
            raise Fault(f"{self.low:g} is above {self.high:g}", "low")
        return self.low, self.high


@dataclass(frozen=True, slots=True)
class Robot(Entry):
    robot_id: Annotated[str, text(8, pattern="[a-z0-9]+", words="a name"), Field(alias="id")]
    span: Annotated[tuple[float, float] | None, described_by(Span)] = None
    count: Annotated[int, whole(1, 9)] = 1
    mode: Annotated[str, choice("slow", "fast")] = "slow"
    level: Annotated[int, named({"low": 1, "high": 2})] = 1
    on: Annotated[bool, flag()] = True
    kind: Annotated[str, known(lambda kinds: kinds)] = ""
    times: Annotated[float, number(scale=1e-3)] | None = None
    where: Annotated[str, NOT_IN_FILE] = "nowhere"


@dataclass(frozen=True, slots=True)
class Fleet(Entry):
    robots: Annotated[tuple[Robot, ...], items(1, 3)]
    notes: Mapping[str, Annotated[str, text(least=0)]] = field(default_factory=dict)

    def checked(self, context: object) -> Fleet:
        seen: dict[str, int] = {}
        for i, robot in enumerate(self.robots):
            if (first := seen.setdefault(robot.robot_id, i)) != i:
                reason = "is there already, in line {line}"
                raise Fault(reason, "robots", i, "id", first=("robots", first, "id"))
        return self


def read(content: str) -> Fleet:
    return parse_yaml(content, "f.yaml").read(Fleet, ("tello", "indy7"))


def refused(content: str) -> str:
    with pytest.raises(FileError) as caught:
        read(content)
    return str(caught.value)


def test_what_a_file_says():
    fleet = read(
        "notes: {a: 12, 'b': ''}\n"
        "robots:\n"
        "- {id: 12, span: {low: 1e0, high: 2}, count: 3.0, mode: fast, level: high, on: false,\n"
        "   kind: tello, times: 250}\n"
        "- {id: b}\n"
    )
    one, two = fleet.robots
    assert one == Robot("12", (1.0, 2.0), 3, "fast", 2, False, "tello", 0.25)
    assert two == Robot("b")
    assert fleet.notes == {"a": "12", "b": ""}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "f.yaml:1: is empty"),
        ("- a", "f.yaml:1: is a list: must be a mapping"),
        ("robots: x", "f.yaml:1: robots: is 'x': must be a list"),
        ("robots: []", "f.yaml:1: robots: has 0 entries: must have 1 to 3"),
        ("notes: {}", "f.yaml:1: 'robots' is missing"),
        ("notes: 3\nrobots: [{id: a}]", "f.yaml:1: notes: is '3': must be a mapping"),
        ("robots:\n- {id: a}\n- idd: a", "f.yaml:3: robots[1]: unknown key 'idd'; did you mean 'i"),
        ("robots:\n- robot_id: a", "f.yaml:2: robots[0]: unknown key 'robot_id'"),
        ("robots:\n- {id: a, where: x}", "f.yaml:2: robots[0]: unknown key 'where'"),
        ("robots:\n- count: 3", "f.yaml:2: robots[0]: 'id' is missing"),
        ("robots:\n- id: a\n  id: b", "f.yaml:3: robots[0]: key 'id' is given twice"),
        ("robots:\n- id: A", "f.yaml:2: robots[0].id: is 'A': must be a name"),
        ("robots:\n- id: [a]", "f.yaml:2: robots[0].id: is a list: must be a text"),
        ("robots:\n- id: aaaaaaaaa", "robots[0].id: has 9 characters: must have 1 to 8"),
        ("robots:\n- id: a\n  count: 0", "f.yaml:3: robots[0].count: is 0: must be 1 to 9"),
        ("robots:\n- id: a\n  count: 1.5", "count: is 1.5: must be a whole number"),
        ("robots:\n- id: a\n  count: true", "count: is 'true': must be a whole number"),
        ("robots:\n- id: a\n  count: '3'", "count: is '3': must be a whole number"),
        ("robots:\n- id: a\n  span: {low: 11}", "span.low: is 11 m: must be 0 to 10 m"),
        ("robots:\n- id: a\n  span: {low: .nan}", "span.low: is '.nan': must be a finite number"),
        ("robots:\n- id: a\n  span: {low: 3, high: 2}", "f.yaml:3: robots[0].span.low: 3 is above"),
        ("robots:\n- id: a\n  mode: fats", "mode: 'fats' is unknown; did you mean 'fast'?"),
        ("robots:\n- id: a\n  on: 1", "on: is 1: must be true or false"),
        (
            "robots:\n- id: a\n  kind: telo",
            "'telo' is unknown; did you mean 'tello'? (known",
        ),
        (
            "robots:\n- {id: a}\n- {id: b}\n- {id: a}",
            "f.yaml:4: robots[2].id: is there already",
        ),
        ("robots:\n- {id: a}\n- {id: a}", "in line 2"),
        ("notes: {a: *b}", "f.yaml:1: is not YAML: found undefined alias"),
        ("notes: {? [a] : b}", "f.yaml:1: notes: a key must be a text of 1 to 200 characters"),
        ("[" * 20_000, "f.yaml:1: is not YAML: is nested too deeply: more than 32"),
        ("- " * 20_000, "f.yaml:1: is not YAML: is nested too deeply: more than 32"),
        (
            "".join(" " * i + "a:\n" for i in range(40)),
            "f.yaml:33: is not YAML: is nested",
        ),
        ("[\n" + "[" * 400 + "]" * 400 + ",\n" * 300 + "]", "f.yaml:2: is not YAML: is nested"),
        ("x" * 300_000, "f.yaml:1: has 300000 characters: must have at most 262144"),
    ],
)
def test_what_is_wrong_is_named_with_line_and_field(content, words):
    assert words in refused(content)


def test_the_error_has_its_parts():
    with pytest.raises(FileError) as caught:
        read("robots:\n- id: A")
    error = caught.value
    assert (error.source, error.line, error.field) == ("f.yaml", 2, "robots[0].id")
    assert error.reason == "is 'A': must be a name"


def test_what_an_alias_names_is_read_wherever_it_stands():
    fleet = read("robots:\n- &r {id: a, span: &s {low: 1}}\n- {id: b, span: *s}")
    assert fleet.robots[0].span == fleet.robots[1].span == (1.0, 10.0)


def test_an_alias_inside_of_itself_is_refused():
    assert "robots[0].id: is a mapping: must be a text" in refused("robots:\n- &r {id: *r}")


def test_json_is_read_by_the_same_schema():
    fleet = parse_json('{"robots": [{"id": "a", "times": null, "count": 2}]}', "f").read(Fleet)
    assert fleet.robots == (Robot("a", count=2),)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"robots": [{"id": 3}]}', "f:7: robots[0].id: is 3: must be a text"),
        ('{"robots": [{"id": "a", "count": NaN}]}', "count: is NaN: must be a whole number"),
        ('{"robots": [{"id": "a", "count": 1e999}]}', "count: is Infinity: must be a whole"),
        ('{"robots": [{"id": "a", "id": "b"}]}', "f:7: key 'id' is given twice"),
        ("{", "f:7: is not JSON: "),
        ("[" * 100_000, "f:7: is not JSON that can be read: "),
        ("1" * 5000, "f:7: is not JSON that can be read: "),
    ],
)
def test_what_is_wrong_in_a_line_of_json_is_named(content, words):
    with pytest.raises(FileError) as caught:
        parse_json(content, "f", 7).read(Fleet)
    assert words in str(caught.value)


def test_a_file_that_is_no_text_is_named_by_line(tmp_path):
    path = tmp_path / "f"
    path.write_bytes("é\n".encode())
    assert file_text(path) == "é\n"
    path.write_bytes(b"a\n\xe9")
    with pytest.raises(FileError, match="f:2: is not UTF-8$"):
        file_text(path)


def test_a_file_without_an_end_is_not_read_to_it(monkeypatch):
    monkeypatch.setattr(reader, "MAX_BYTES", 1000)
    with pytest.raises(FileError, match="^/dev/zero: is larger than 1000 bytes$"):
        file_text("/dev/zero")


@pytest.mark.parametrize("content", ["[" * 9999, "2001-99-99", "!!int x", "a: *b", "\0", "!!x y"])
def test_yaml_that_cannot_be_is_a_value_error_in_one_line(content):
    with pytest.raises(ValueError) as caught:
        yaml_value(content)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", ["[" * 99_999, '{"a":' * 9999, "9" * 5000, b"\xff", "{", "[1]"])
def test_json_that_is_no_object_is_a_value_error(content):
    with pytest.raises(ValueError, match="^is not JSON: |^is not a JSON object$"):
        json_object(content)
