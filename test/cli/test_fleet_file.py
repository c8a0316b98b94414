"""Fleet files and scripts: what they say, and every way in which they are refused."""

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robot_adapters.adapter import AdapterError, AdapterParameter
from timely_llm.bench.profile_file import load_profile
from timely_llm.cli.fleet_file import (
    RobotSpec,
    SimulatorSpec,
    bundled_kinds,
    fleet_nodes,
    load_fleet,
    read_fleet,
)
from timely_llm.cli.script_file import load_script, read_script
from timely_llm.paths import share
from timely_llm.protocols.messages import ErrorCode, OnFailure, WhenBusy
from timely_llm.protocols.utility import Urgency
from timely_llm.validation.reader import FileError

PARAMETERS = (
    AdapterParameter("seed", 0, "of chance"),
    AdapterParameter("z", 1.0, "height", "m", 0.0, 10.0),
    AdapterParameter("world", "", "a file"),
    AdapterParameter("fast", False, "a switch"),
    AdapterParameter("speed", 1.0, "without limits"),
)


def known_adapter(name: str) -> tuple[AdapterParameter, ...]:
    if name != "simulated":
        raise AdapterError(f"adapter: unknown name {name!r}; did you mean 'simulated'?")
    return PARAMETERS


def fleet(text: str, folder: Path | None = None):
    return read_fleet(text, "f.yaml", folder, ["indy7", "tello"], known_adapter)


def refused(text: str, folder: Path | None = None) -> str:
    with pytest.raises(FileError) as caught:
        fleet(text, folder)
    return str(caught.value)


def test_what_a_fleet_file_says(tmp_path):
    (tmp_path / "crane.yaml").write_text("")
    (tmp_path / "hall.yaml").write_text("")
    text = """
description: two robots
robots:
  - {id: d1, kind: tello}
  - id: crane
    skill_set: crane.yaml
    namespace: hall/crane
    adapter: simulated
    parameters: {seed: 3, z: 2, world: hall.yaml, fast: true}
"""
    read = fleet(text, tmp_path)
    assert read.description == "two robots"
    assert read.ids == ("d1", "crane")
    assert read["d1"] == RobotSpec("d1", "tello", "d1")
    assert read["crane"] == RobotSpec(
        "crane", "", "hall/crane", "simulated", str(tmp_path / "crane.yaml"),
        {"seed": 3, "z": 2.0, "world": str(tmp_path / "hall.yaml"), "fast": True},
    )  # fmt: skip
    assert type(read["crane"].parameters["z"]) is float


def test_simulators_and_script_of_a_fleet(tmp_path):
    (tmp_path / "play.yaml").write_text("")
    text = """
script: play.yaml
simulators:
  - {name: tello, arguments: [--count, 3, --fault, 127.0.0.2/motor@20]}
  - {name: indy, python: env/bin/python}
robots: [{id: d1, kind: tello}]
"""
    read = fleet(text, tmp_path)
    assert read.script == str(tmp_path / "play.yaml")
    assert read.simulators == (
        SimulatorSpec("tello", ("--count", "3", "--fault", "127.0.0.2/motor@20")),
        SimulatorSpec("indy", (), str(tmp_path / "env/bin/python")),
    )
    assert read.simulators[1].command == ("sim-indy",)
    assert fleet("robots: [{id: d1, kind: tello}]").simulators == ()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("simulators: [{name: telo}]", "f.yaml:2: simulators[0].name: 'telo' is unknown; did you"),
        ("simulators: [{arguments: []}]", "'name' is missing"),
        ("simulators: [{name: tello, count: 3}]", "unknown key 'count'"),
        ("simulators: [{name: indy, python: bash}]", "must be the path of an interpreter"),
        ("script: nowhere.yaml", "there is no file"),
    ],
)
def test_wrong_simulators_and_scripts_are_refused(text, words, tmp_path):
    assert words in refused(f"robots: [{{id: d1, kind: tello}}]\n{text}", tmp_path)


def test_the_nodes_of_a_fleet():
    read = fleet("robots: [{id: d1, kind: tello, parameters: {seed: 3}}]")
    (root,) = fleet_nodes(read)
    assert (root.namespace, root.executable) == ("/d1", "robot_adapter")
    assert root.parameters == {
        "robot_id": "d1",
        "kind": "tello",
        "adapter": "simulated",
        "planner_namespace": "/",
        "seed": 3,
    }
    (below,) = fleet_nodes(read, "/hall/")
    assert below.namespace == "/hall/d1"
    assert below.parameters["planner_namespace"] == "/hall"


def test_a_robot_may_run_in_another_environment(tmp_path):
    text = "robots: [{id: a, kind: indy7, python: ../.venv-indy/bin/python}, {id: b, kind: tello}]"
    read = fleet(text, tmp_path / "fleets")
    python = str(tmp_path / ".venv-indy/bin/python")
    assert [robot.python for robot in read.robots] == [python, ""]
    assert [node.python for node in fleet_nodes(read)] == [python, ""]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "robots:\n- id: a\n  kind: tello\n  python: .venv-indy",
            "f.yaml:4: robots[0].python: is '.venv-indy': must be the path of an interpreter",
        ),
        ("", "f.yaml:1: is empty"),
        ("robots: [", "f.yaml:1: is not YAML"),
        ("robots: 3", "f.yaml:1: robots: is '3': must be a list"),
        ("robots: []", "robots: has 0 entries: must have 1 to 256"),
        ("- a", "f.yaml:1: is a list: must be a mapping"),
        ("robot: []", "unknown key 'robot'; did you mean 'robots'?"),
        ("description: x", "'robots' is missing"),
        ("robots:\n- {id: a}", "f.yaml:2: robots[0]: must have either 'kind' or 'skill_set'"),
        ("robots:\n- {id: a, kind: tello, skill_set: x}", "either 'kind' or 'skill_set'"),
        ("robots:\n- {kind: tello}", "f.yaml:2: robots[0]: 'id' is missing"),
        ("robots:\n- id: a\n  kind: tela", "f.yaml:3: robots[0].kind: 'tela' is unknown; did you"),
        ("robots:\n- id: a\n  kind: tela", "did you mean 'tello'? (known: indy7, tello)"),
        ("robots:\n- id: 1a\n  kind: tello", "robots[0].id: is '1a': must be letters"),
        ("robots:\n- id: a\n  id: b", "f.yaml:3: robots[0]: key 'id' is given twice"),
        ("robots:\n- id: a\n  kin: tello", "f.yaml:3: robots[0]: unknown key 'kin'; did you"),
        (
            "robots:\n- {id: a, kind: tello}\n- {id: a, kind: tello}",
            "f.yaml:3: robots[1].id: id 'a' is already another robot's, in line 2",
        ),
        (
            "robots:\n- {id: a, kind: tello}\n- {id: b, kind: tello, namespace: /a}",
            "f.yaml:3: robots[1].namespace: namespace '/a' is already another robot's, in line 2",
        ),
        ("robots:\n- {id: a, kind: tello, namespace: a b}", "namespace: is 'a b': must be a ROS"),
        (
            "robots:\n- {id: a, kind: tello, adapter: simulate}",
            "f.yaml:2: robots[0].adapter: unknown name 'simulate'; did you mean 'simulated'?",
        ),
        (
            "robots:\n- id: a\n  kind: tello\n  parameters:\n    sed: 3",
            "f.yaml:5: robots[0].parameters.sed: the adapter has no parameter 'sed'; did you mean "
            "'seed'?",
        ),
        ("robots: [{id: a, kind: tello, parameters: {seed: 1.5}}]", "is 1.5: must be a whole"),
        ("robots: [{id: a, kind: tello, parameters: {seed: true}}]", "is True: must be a whole"),
        ("robots: [{id: a, kind: tello, parameters: {z: high}}]", "is 'high': must be a number"),
        ("robots: [{id: a, kind: tello, parameters: {z: 11}}]", "at least 0 m and at most 10 m"),
        ("robots: [{id: a, kind: tello, parameters: {fast: 1}}]", "is 1: must be true or false"),
        ("robots: [{id: a, kind: tello, parameters: {seed: [1]}}]", "must be a single value"),
        (
            "robots: [{id: a, kind: tello, parameters: 3}]",
            "robots[0].parameters: is '3': must be a",
        ),
        ("robots: [{id: a, skill_set: no.yaml}]", "there is no file '"),
        ("robots: [{id: {}, kind: tello}]", "robots[0].id: is a mapping: must be a text"),
    ],
)
def test_what_a_fleet_file_must_not_say(text, words):
    assert words in refused(text)


@pytest.mark.parametrize(
    "value",
    [
        *("2001-99-99", "0x_", "0b_", "!!int abc", "!!bool abc", "!!timestamp abc", "!foo 3"),
        *("!!float abc", "!!binary a", "1" * 5000, "1" * 400, "99999999999999999999"),
    ],
)
@pytest.mark.parametrize("key", ["z", "seed"])
def test_a_value_that_cannot_be_read_is_named_by_line_and_field(key, value):
    words = refused(f"robots:\n- id: a\n  kind: tello\n  parameters:\n    {key}: {value}")
    assert words.startswith(f"f.yaml:5: robots[0].parameters.{key}: is ")
    assert len(words) < 300
    with pytest.raises(FileError, match="^s.yaml:3: instructions.0..at: is "):
        read_script(SCRIPT.replace("at: 2", f"at: {value}"), ("d1", "a1"), "s.yaml")


@pytest.mark.parametrize("value", [2**63 - 1, -(2**63)])
def test_a_seed_may_be_any_int64(value):
    read = fleet(f"robots: [{{id: a, kind: tello, parameters: {{seed: {value}}}}}]")
    assert read["a"].parameters["seed"] == value


def test_no_number_is_not_within_limits():
    words = refused("robots: [{id: a, kind: tello, parameters: {z: .nan}}]")
    assert "z: is nan: must be at least 0 m and at most 10 m" in words
    words = refused("robots: [{id: a, kind: tello, parameters: {speed: .nan}}]")
    assert "speed: is nan: must be a number" in words


def test_a_long_text_is_no_file_but_may_be_a_parameter():
    read = fleet(f"robots: [{{id: a, kind: tello, parameters: {{world: {'a' * 300}}}}}]")
    assert read["a"].parameters["world"] == "a" * 300
    words = refused(f"robots: [{{id: a, kind: tello}}]\nscript: {'a' * 300}")
    assert "script: there is no file" in words


def test_the_home_of_nobody_is_no_folder(tmp_path):
    robot = "robots: [{id: a, kind: tello}]"
    assert "there is no file" in refused(f"{robot}\nscript: ~nobody_here/x.yaml")
    assert "there is no file" in refused("robots: [{id: a, skill_set: ~nobody_here/x.yaml}]")
    python = fleet("robots: [{id: a, kind: tello, python: ~nobody_here/python}]", tmp_path)
    assert python["a"].python == str(tmp_path / "~nobody_here/python")
    for load in (load_fleet, lambda path: load_script(path, ("a",)), load_profile):
        with pytest.raises(FileNotFoundError):
            load("~nobody_here/x.yaml")


def test_a_file_that_is_no_text_is_named_by_line(tmp_path):
    path = tmp_path / "latin.yaml"
    path.write_bytes(b"robots: []\ndescription: caf\xe9\n")
    for load in (load_fleet, lambda path: load_script(path, ("a",)), load_profile):
        with pytest.raises(FileError) as caught:
            load(path)
        assert str(caught.value) == f"{path}:2: is not UTF-8"


@pytest.mark.parametrize("text", ['a: "\\UFFFFFFFF"', f"%YAML {'1' * 5000}.1\n--- 1"])
def test_what_the_yaml_reader_trips_over_is_no_yaml(text):
    assert refused(text).startswith("f.yaml:1: is not YAML")


@given(st.text(max_size=60))
def test_any_text_is_a_fleet_or_a_yaml_error(text):
    with pytest.raises(FileError):
        fleet(text)


def test_the_bundled_fleet_and_script_are_what_the_demo_promises():
    demo = load_fleet(share("config", "fleets", "demo.yaml"))
    kinds = [robot.kind for robot in demo.robots]
    assert (kinds.count("tello"), kinds.count("indy7")) == (4, 2)
    assert set(kinds) <= bundled_kinds()
    script = load_script(share("config", "scripts", "demo.yaml"), demo.ids)
    urgencies = [item.goal.urgency for item in script.instructions]
    assert len(script.instructions) >= 12
    assert sum(urgency <= Urgency.URGENT for urgency in urgencies) >= 3
    assert sum(math.isfinite(item.cancel_after) for item in script.instructions) == 1
    assert {item.goal.robot_id for item in script.instructions} == set(demo.ids)


SCRIPT = """
instructions:
  - {at: 2, robot: d1, instruction: second}
  - at: 0.5
    robot: a1
    instruction: first
    scene: "[cat]"
    urgency: urgent
    when_busy: preempt
    on_failure: replan
    cancel_after: 3
"""


def test_what_a_script_says():
    first, second = read_script(SCRIPT, ("d1", "a1")).instructions
    assert (first.at, second.at) == (0.5, 2.0)
    assert (first.goal.robot_id, first.goal.instruction) == ("a1", "first")
    assert first.goal.scene == "[cat]"
    assert (first.goal.urgency, first.goal.when_busy) == (Urgency.URGENT, WhenBusy.PREEMPT)
    assert (first.goal.on_failure, first.goal.max_replans) == (OnFailure.REPLAN, 1)
    assert (second.goal.on_failure, second.goal.max_replans) == (OnFailure.ABORT, 0)
    assert (first.cancel_after, first.expect) == (3.0, (ErrorCode.CANCELED,))
    assert (second.cancel_after, second.expect) == (math.inf, (ErrorCode.NONE,))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            "robot: d1",
            "robot: d2",
            "s.yaml:3: instructions[0].robot: 'd2' is not in the fleet (kno",
        ),
        ("at: 2", "at: -1", "instructions[0].at: is -1 s: must be 0 to 86400 s"),
        ("at: 2", "at: .nan", "instructions[0].at: is '.nan': must be a finite number"),
        ("at: 2", "at: soon", "instructions[0].at: is 'soon': must be a finite number"),
        ("at: 2, ", "", "instructions[0]: 'at' is missing"),
        ("instruction: second", "instruction: ''", "has 0 characters: must have 1 to 4000"),
        ("urgency: urgent", "urgency: urgnt", "s.yaml:8: instructions[1].urgency: 'urgnt' is unk"),
        ("when_busy: preempt", "when_busy: wait", "(known: preempt, queue, reject)"),
        ("cancel_after: 3", "max_replans: 1.5", "max_replans: is 1.5: must be a whole number"),
        ("cancel_after: 3", "expect: [CANCELLED]", "did you mean 'CANCELED'?"),
        ("cancel_after: 3", "cancel: 3", "unknown key 'cancel'; did you mean 'cancel_after'?"),
    ],
)
def test_what_a_script_must_not_say(old, new, words):
    assert old in SCRIPT
    with pytest.raises(FileError) as caught:
        read_script(SCRIPT.replace(old, new), ("d1", "a1"), "s.yaml")
    assert words in str(caught.value)
