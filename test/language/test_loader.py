"""Skill files: what is read, and that each fault is refused with its line and reason."""

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plan_language import INDY7, KINDS, ROOT, ROVER, ROVER_YAML, TELLO

from timely_llm.language.grammar import plan_grammar
from timely_llm.language.loader import load_skill_set, read_skill_set
from timely_llm.language.skills import Argument
from timely_llm.validation.reader import FileError

GOOD = """\
kind: crawler
bounds:
  max_string: 20
skills:
  - name: go
    long_name: go_ahead
    arguments:
      - {name: way, type: int, unit: m, minimum: 1, maximum: 9}
      - {name: tag, type: str}
    returns: bool
    duration: {polynomial: [1, 0.5], of: way}
  - name: no
    duration: {constant: 0}
"""


def refused(text: str, source: str = "crawler.yaml") -> str:
    with pytest.raises(FileError) as caught:
        read_skill_set(text, source)
    error = caught.value
    field = f" {error.field}:" if error.field else ""
    assert str(error) == f"{source}:{error.line}:{field} {error.reason}"
    return str(error)


# ---- what is read ----------------------------------------------------------------------------


def test_the_bundled_kinds_are_read():
    assert TELLO.kind, INDY7.kind == ("tello", "indy7")
    assert " ".join(TELLO.names) == (
        "mf mb ml mr mu md tc tu g s sa d p iv ox oy ow oh od l tp rp"
    )  # fmt: skip
    assert INDY7.names == ("sc", "gt", "pi", "dr", "d", "iv", "l")
    assert TELLO["move_forward"].arguments == (Argument("distance", "int", "cm", 20, 500),)
    assert TELLO["turn_cw"].arguments == (Argument("angle", "int", "deg", 1, 360),)
    assert (
        TELLO["d"].arguments
        == INDY7["d"].arguments
        == (Argument("seconds", "float", "s", 0.1, 60),)
    )
    assert TELLO["p"].role, TELLO["rp"].role == ("probe", "replan")
    assert TELLO.bounds.geofence == ((-10, 10), (-10, 10), (0.2, 3))
    assert TELLO.text == (ROOT / "config" / "skills" / "tello.yaml").read_text()


def test_a_kind_of_ones_own_is_one_text():
    assert ROVER.text == ROVER_YAML
    assert ROVER.bounds.max_loop == 5
    assert ROVER["spray"].arguments[0].pattern == "[A-C][0-9]{1,2}(x|yy)?"
    assert ROVER["spray"].arguments[0].maximum == 20
    timed = {skill.name for skill in ROVER.skills if skill.timed}
    assert timed == {"dv", "st", "sp"}


def test_what_is_not_given_has_a_default():
    skills = read_skill_set(GOOD)
    assert (skills["go"].arguments[1].minimum, skills["go"].arguments[1].maximum) == (1, 20)
    assert (skills["no"].long_name, skills["no"].returns, skills["no"].role) == ("no", "none", "")
    assert skills.bounds.max_nesting == 3
    assert skills.description == ""


def test_a_text_reads_the_same_wherever_it_comes_from():
    for skills in KINDS.values():
        again = read_skill_set(skills.text, "registration")
        assert again == skills
        assert plan_grammar(again) == plan_grammar(skills)


# ---- what is refused -------------------------------------------------------------------------

# A change of GOOD (what, by what), the line and what is said.
FAULTS = [
    ("kind: crawler", "kimd: crawler", "1: unknown key 'kimd'; did you mean 'kind'?"),
    ("kind: crawler\n", "", "1: 'kind' is missing"),
    ("kind: crawler", "kind: Crawler 2", "1: kind: is 'Crawler 2': must be lower-case letters"),
    (
        "name: no",
        "name: refuse",
        "12: skills[1].name: 'refuse' is a statement of the plan language",
    ),
    ("kind: crawler", "kind: crawler\nkind: x", "2: key 'kind' is given twice"),
    ("kind: crawler", "kind: [a]", "1: kind: is a list: must be a text"),
    ("kind: crawler", "kind: ''", "1: kind: has 0 characters: must have 1 to 400"),
    (
        "max_string: 20",
        "max_strings: 20",
        "3: bounds: unknown key 'max_strings'; did you mean 'max_s",
    ),
    ("max_string: 20", "max_string: 500", "3: bounds.max_string: is 500: must be 1 to 200"),
    ("max_string: 20", "max_string: 2.5", "3: bounds.max_string: is 2.5: must be a whole number"),
    (
        "max_string: 20",
        "max_string: many",
        "3: bounds.max_string: is 'many': must be a whole number",
    ),
    ("max_string: 20", "max_time: .inf", "3: bounds.max_time: is '.inf': must be a finite number"),
    ("max_string: 20", "max_time: nan", "3: bounds.max_time: is 'nan': must be a finite number"),
    ("max_string: 20", "max_time: '3'", "3: bounds.max_time: is '3': must be a finite number"),
    ("max_string: 20", "geofence: {x: [0, 1], y: [0, 1]}", "3: bounds.geofence: 'z' is missing"),
    (
        "max_string: 20",
        "geofence: {x: [2, 1], y: [0, 1], z: [0, 1]}",
        "3: bounds.geofence.x: is [2, 1]: must not fall",
    ),
    (
        "max_string: 20",
        "geofence: {x: [2], y: [0, 1], z: [0, 1]}",
        "3: bounds.geofence.x: has 1 entries: must have 2 to 2",
    ),
    ("name: go\n", "nam: go\n", "5: skills[0]: unknown key 'nam'; did you mean 'name'?"),
    ("name: go\n", "name: Go\n", "5: skills[0].name: is 'Go': must be lower-case letters"),
    ("name: go\n", "name: 3\n", "5: skills[0].name: is '3': must be lower-case letters"),
    ("name: no\n", "name: go\n", "12: skills[1].name: 'go' is already a skill, in line 5"),
    (
        "name: no\n",
        "name: go_ahead\n",
        "12: skills[1].name: 'go_ahead' is already a skill, in line 5",
    ),
    (
        "name: no\n",
        "name: no\n    long_name: go\n",
        "13: skills[1].long_name: 'go' is already a skill",
    ),
    ("    duration: {constant: 0}\n", "", "12: skills[1]: 'duration' is missing"),
    (
        "returns: bool",
        "returns: boolean",
        "10: skills[0].returns: 'boolean' is unknown; did you mean 'bool'?",
    ),
    ("returns: bool", "role: prob", "10: skills[0].role: 'prob' is unknown; did you mean 'probe'?"),
    ("returns: bool", "role: probe", "10: skills[0].role: a probe takes one str and returns str"),
    ("returns: bool", "role: replan", "10: skills[0].role: a replan takes and returns nothing"),
    (
        "returns: bool",
        "definition: 'no(3'",
        "10: skills[0].definition: character 4: the plan is cut off",
    ),
    ("returns: bool", 'description: "a\\nb"', "10: skills[0].description: holds a line break"),
    (
        "type: int",
        "type: integer",
        "8: skills[0].arguments[0].type: 'integer' is unknown; did you mean 'int'?",
    ),
    (
        "minimum: 1",
        "minimun: 1",
        "8: skills[0].arguments[0]: unknown key 'minimun'; did you mean 'minimum'?",
    ),
    (
        "minimum: 1, ",
        "",
        "8: skills[0].arguments[0]: 'minimum' is missing: a number needs both limits",
    ),
    (
        "minimum: 1",
        "minimum: 10",
        "8: skills[0].arguments[0].minimum: minimum 10 is above maximum 9",
    ),
    (
        "minimum: 1",
        "minimum: 1.5",
        "8: skills[0].arguments[0].minimum: is 1.5: must be a whole number",
    ),
    (
        "maximum: 9",
        "maximum: 1e9",
        "8: skills[0].arguments[0].maximum: is 1e+09: must be -1e+06 to 1e+06",
    ),
    ("unit: m,", "pattern: a,", "8: skills[0].arguments[0].pattern: only a str has a pattern"),
    (
        "{name: tag, type: str}",
        "{name: way, type: str}",
        "9: skills[0].arguments[1]: argument 'way' is given twice",
    ),
    (
        "type: str}",
        "type: str, maximum: 21}",
        "9: skills[0].arguments[1].maximum: is 21: must be 1 to 20",
    ),
    (
        "type: str}",
        "type: str, pattern: '(a'}",
        "9: skills[0].arguments[1].pattern: '(a' is not a regular expression: missing )",
    ),
    (
        "type: str}",
        "type: str, pattern: '(a+)+'}",
        "9: skills[0].arguments[1].pattern: '(a+)+' could take exponential time",
    ),
    (
        "type: str}",
        "type: str, pattern: 'a{1,30}'}",
        "9: skills[0].arguments[1].pattern: 'a{1,30}' matches 1 to 30 characters: must",
    ),
    (
        "type: str}",
        "type: str, pattern: 'a?'}",
        "9: skills[0].arguments[1].pattern: 'a?' matches 0 to 1 characters: must",
    ),
    (
        "of: way",
        "of: tag",
        "11: skills[0].duration.of: 'tag' is not a numeric argument of this skill",
    ),
    (
        ", of: way",
        "",
        "11: skills[0].duration: a polynomial, and nothing else, is 'of' an argument",
    ),
    (
        "[1, 0.5]",
        "[1, -0.5]",
        "11: skills[0].duration.polynomial: is -3.5 to 0.5 s within the argument's limits",
    ),
    (
        "{constant: 0}",
        "{constant: 0, uniform: [1, 2]}",
        "13: skills[1].duration: must have exactly one of",
    ),
    (
        "{constant: 0}",
        "{constant: -1}",
        "13: skills[1].duration.constant: is -1: must be 0 to 86400",
    ),
    (
        "{constant: 0}",
        "{uniform: [2, 1]}",
        "13: skills[1].duration.uniform: is [2, 1]: must not fall",
    ),
    ("{constant: 0}", "{choice: {step: 1}}", "13: skills[1].duration.choice: 'count' is missing"),
    (
        "{constant: 0}",
        "{argument: way}",
        "13: skills[1].duration.argument: 'way' is not a numeric argument",
    ),
    (
        "{constant: 0}",
        "{polynom: [1]}",
        "13: skills[1].duration: unknown key 'polynom'; did you mean 'polynomial'?",
    ),
    ("bounds:\n", "bounds: {\n", "4: is not YAML"),
    ("kind: crawler", "kind: \x07", "1: is not YAML"),
    ("kind: crawler", "kind: *nobody", "1: is not YAML: found undefined alias"),
]


@pytest.mark.parametrize(("what", "by", "said"), FAULTS, ids=[f"{f[1]!r}"[:40] for f in FAULTS])
def test_a_fault_is_refused_with_line_and_reason(what, by, said):
    read_skill_set(GOOD)
    assert GOOD.count(what) >= 1
    assert refused(GOOD.replace(what, by, 1)).startswith(f"crawler.yaml:{said}")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "1: is empty"),
        ("- a", "1: is a list: must be a mapping"),
        ("x" * 70_000, "1: has 70000 characters: must have at most 65536"),
        ("[" * 5000, "1: is not YAML: is nested too deeply"),
        ("kind: x\nskills: []", "2: skills: has 0 entries: must have 1 to 64"),
        ("kind: x\nskills: {a: b}", "2: skills: is a mapping: must be a list"),
        ("kind: x\nskills: [a]", "2: skills[0]: is 'a': must be a mapping"),
    ],
)
def test_a_text_that_is_no_skill_set_is_refused(text, said):
    assert refused(text).startswith(f"crawler.yaml:{said}")


def test_files(tmp_path):
    path = tmp_path / "x.yaml"
    with pytest.raises(FileNotFoundError):
        load_skill_set(path)
    path.write_bytes(b"kind: x\n\xff")
    with pytest.raises(FileError, match=f"{path}:2: is not UTF-8"):
        load_skill_set(path)
    path.write_text(GOOD)
    assert load_skill_set(str(path)) == read_skill_set(GOOD)


@given(st.data())
def test_no_text_breaks_the_reader(data):
    """Whatever is written: a skill set, or a refusal with a line of the text."""
    lines = ROVER_YAML.split("\n")
    place = data.draw(st.integers(0, len(lines) - 1))
    change = data.draw(st.sampled_from(["cut", "drop", "mix", "insert"]))
    if change == "drop":
        del lines[place]
    elif change == "mix":
        other = data.draw(st.integers(0, len(lines) - 1))
        lines[place], lines[other] = lines[other], lines[place]
    else:
        at = data.draw(st.integers(0, len(lines[place])))
        word = data.draw(
            st.sampled_from(["", "x", "-", "0", "{", "'", ": ", "\t", "[1]", "&a", "é"])
        )
        lines[place] = lines[place][:at] + word + lines[place][at + (change == "cut") :]
    text = "\n".join(lines)
    try:
        skills = read_skill_set(text)
    except FileError as error:
        assert 1 <= error.line <= len(lines) + 1
    else:
        assert plan_grammar(skills).startswith("root ::= plan")


def test_files_of_any_machine_are_read_alike():
    rng = random.Random(1)
    windows = ROVER_YAML.replace("\n", "\r\n")
    assert read_skill_set(windows).skills == ROVER.skills
    assert read_skill_set(windows)["st"].sample_duration((), rng) <= 0.9


def test_the_example_of_the_reference_is_a_skill_set():
    text = (ROOT / "docs" / "your_robot.md").read_text()
    example = re.search(r"```yaml\n(.*?)```", text, re.DOTALL)[1]
    assert read_skill_set(example).names == ("dv", "sp", "bt")
    wrong = example.replace("minimum: -2.5", "minimun: -2.5")
    assert refused(wrong, "rover.yaml").split(" (")[0] in text
