"""Traces in files: what is written is read, whatever it holds; what is wrong is named."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timely_llm.language.loader import read_skill_set
from timely_llm.language.parser import parse
from timely_llm.protocols.utility import MOST, TimeUtility, Urgency
from timely_llm.simulation.trace import Arrival, Task, Trace
from timely_llm.simulation.trace_file import from_text, read, to_text, write
from timely_llm.simulation.workloads.published import make, names
from timely_llm.simulation.workloads.tasks import published, skill_sets
from timely_llm.simulation.workloads.text_tasks import TEXT_KINDS, reading_durations
from timely_llm.validation.reader import FileError

DOCS = Path(__file__).parents[2] / "docs" / "evaluation.md"
EXAMPLE = re.search(r"```json\n(.*?)```", DOCS.read_text(), re.DOTALL)[1]

TEXT = st.text(st.characters(exclude_categories=("Cs",)))
SOME_TEXT = TEXT.filter(bool)
TIME = st.floats(0, 1e9)
COUNT = st.integers(0, 10**9)
UTILITY = st.builds(
    TimeUtility, *(st.floats(*ends) for ends in ((0, MOST), (-MOST, 0), (1e-300, MOST)))
)
ANSWER = st.builds(
    Task,
    name=SOME_TEXT,
    kind=st.sampled_from(sorted(TEXT_KINDS)),
    instruction=TEXT,
    tokens=st.lists(SOME_TEXT | st.sampled_from([" Yes", ".", "\n\n"]), min_size=1).map(tuple),
    utility=UTILITY,
    urgency=st.sampled_from(Urgency),
    scene=TEXT,
    system_tokens=COUNT,
    prompt_tokens=st.integers(1, 10**9),
    ttft=TIME,
    tpot=TIME,
)
PLAN = st.builds(
    lambda task, utility, scene: replace(task, utility=utility, scene=scene),
    st.sampled_from(published()),
    UTILITY,
    TEXT,
)


def parts(task):
    if task.kind in TEXT_KINDS:
        return len(reading_durations(task))
    return len(parse(task.plan, skill_sets()[task.kind]))


@st.composite
def traces(draw):
    tasks = draw(st.lists(ANSWER | PLAN, min_size=1, max_size=4))
    times = sorted(draw(st.lists(TIME, min_size=1, max_size=8)))
    arrivals = []
    for at in times:
        task = draw(st.sampled_from(tasks))
        durations = draw(st.lists(TIME, min_size=(n := parts(task)), max_size=n))
        robot = f"{task.kind} {draw(TEXT)}"
        arrivals.append(Arrival(at, robot, task, tuple(durations)))
    return Trace(draw(SOME_TEXT), tuple(arrivals), draw(TEXT))


# What is written is read


@given(traces())
def test_what_is_written_is_read(trace):
    text = to_text(trace)
    assert text.isascii()
    assert repr(from_text(text)) == repr(trace)  # to the last bit, whatever equality says
    assert to_text(from_text(text)) == text


@pytest.mark.parametrize("name", names())
def test_every_workload_is_read_as_it_was_written(name, tmp_path):
    trace = make(name, seed=3, load=3.7)
    write(trace, tmp_path / "trace.jsonl")
    assert read(tmp_path / "trace.jsonl") == trace


def test_a_task_is_written_once():
    lines = [json.loads(line) for line in to_text(make("wid2")).splitlines()]
    assert [line["type"] for line in lines] == ["trace"] + ["task"] * 8 + ["arrival"] * 532


def test_the_documented_example_is_read():
    trace = from_text(EXAMPLE)
    assert [each.task.plan for each in trace.arrivals] == ["mu(50);ml(50);", "It rained. She left."]
    assert trace.arrivals[1].durations == (0.4, 0.4)
    keys = {key for line in EXAMPLE.splitlines() for key in json.loads(line)} | {"ttft_s", "tpot_s"}
    assert all(f"`{key}`" in DOCS.read_text() for key in keys)


def test_plans_are_checked_against_the_skills_that_are_given():
    text = "kind: tello\ndescription: d\nskills:\n  - name: mu\n    long_name: up\n"
    text += "    description: up\n    duration: {constant: 1}\n"
    with pytest.raises(FileError, match="do not parse against the skills of tello"):
        from_text(EXAMPLE, skills={"tello": read_skill_set(text)})


# What is wrong is named


def changed(line, **values):
    """The example with values of one of its lines changed; None takes a key away."""
    lines = EXAMPLE.splitlines()
    entry = json.loads(lines[line - 1])
    for key, value in values.items():
        entry[key] = value
        if value is None:
            del entry[key]
    lines[line - 1] = json.dumps(entry)
    return "\n".join(lines)


UTILITY_LINE = {"ert_s": 0.2, "alpha": -6.6667, "beta": 2.0}
FAULTS = [
    ("", "1: is empty: the first line has the type 'trace'"),
    (EXAMPLE.split("\n", 1)[1], "1: type: is 'task': the first line, and no other"),
    (EXAMPLE + EXAMPLE, "6: type: is 'trace': the first line, and no other"),
    ("\n".join(EXAMPLE.splitlines()[:3]), "3: no line has the type 'arrival'"),
    (EXAMPLE + "{", "6: is not JSON: "),
    (EXAMPLE + "[" * 100_000, "6: is not JSON that can be read: "),
    (EXAMPLE + "1" * 5000, "6: is not JSON that can be read: "),
    (EXAMPLE + "[]", "6: is a list: must be a mapping"),
    (EXAMPLE + '{"type": "task", "id": 1, "id": 2}', "6: key 'id' is given twice"),
    (EXAMPLE + "{}", "6: type: '' is unknown (known: arrival, task, trace)"),
    (EXAMPLE + '{"type": "arival"}', "6: type: 'arival' is unknown; did you mean 'arrival'?"),
    (EXAMPLE + '{"type": "arrival"}', "6: 'at_s' is missing"),
    (EXAMPLE + '{"type": "arrival", "at_s": NaN}', "6: at_s: is NaN: must be a finite number"),
    (changed(1, version=2), "1: version: is 2: this reader knows 1"),
    (changed(1, version=True), "1: version: is true: must be a whole number"),
    (changed(1, name=""), "1: name: has 0 characters: must have 1 to "),
    (changed(1, sauce="x"), "1: unknown key 'sauce'; did you mean 'source'?"),
    (changed(2, promt_tokens=3), "2: unknown key 'promt_tokens'; did you mean 'prompt_tokens'?"),
    (changed(2, prompt_tokens=0), "2: prompt_tokens: is 0: must be at least 1"),
    (changed(2, system_tokens=1.5), "2: system_tokens: is 1.5: must be a whole number"),
    (changed(2, urgency="urgnt"), "2: urgency: 'urgnt' is unknown; did you mean 'urgent'?"),
    (changed(2, kind="telo"), "2: kind: 'telo' is unknown; did you mean 'tello'?"),
    (changed(2, kind=7), "2: kind: is 7: must be a text"),
    (changed(2, tokens=[]), "2: tokens: has 0 entries: must have 1 to "),
    (changed(2, tokens="mu(50);"), '2: tokens: is "mu(50);": must be a list'),
    (changed(2, tokens=["mu(50)", ""]), "2: tokens[1]: has 0 characters: must have 1 to "),
    (changed(2, tokens=["mu(50)", None]), "2: tokens[1]: is null: must be a text"),
    (changed(2, tokens=["mu(50"]), "2: tokens: do not parse against the skills of tello: plan, "),
    (changed(2, tokens=["mx(50);"]), "2: tokens: do not parse against the skills of tello: plan, "),
    (changed(2, tokens=["mu(5000)"]), "2: tokens: do not parse against the skills of tello: plan,"),
    (changed(2, utility=3), "2: utility: is 3: must be a mapping"),
    (
        changed(2, utility={**UTILITY_LINE, "ert": 1}),
        "2: utility: unknown key 'ert'; did you mean 'ert_s'?",
    ),
    (
        changed(2, utility={**UTILITY_LINE, "ert_s": -1}),
        "2: utility: utility.ert is -1.0 s: must be at",
    ),
    (
        changed(2, utility={**UTILITY_LINE, "alpha": 1}),
        "2: utility: utility.alpha is 1.0/s: must be at",
    ),
    (
        changed(2, utility={**UTILITY_LINE, "beta": 0}),
        "2: utility: utility.beta is 0.0: must be above 0",
    ),
    (changed(2, ttft_s=-0.1), "2: ttft_s: is -0.1: must be at least 0"),
    (changed(2, instruction=None), "2: 'instruction' is missing"),
    (changed(3, id=0), "3: id: is 0: another task has it"),
    (changed(4, at_s=-0.5), "4: at_s: is -0.5: must be at least 0"),
    (changed(4, at_s="0.5"), '4: at_s: is "0.5": must be a finite number'),
    (changed(4, at_s=10**400), "4: at_s: is 1000000000"),
    (changed(4, robot=""), "4: robot: has 0 characters: must have 1 to "),
    (changed(4, task=2), "4: task: is 2: no task line before this one has that id"),
    (changed(4, durations_s=[1.0]), "4: durations_s: has 1: task 0 has 2 calls that take time"),
    (changed(4, durations_s=[1.0, -1]), "4: durations_s[1]: is -1: must be at least 0"),
    (changed(5, durations_s=None), "5: durations_s: has 0: task 1 has 2 segments that take time"),
    (changed(5, at_s=0.25), "5: at_s: is 0.25: the arrival before it is at 0.5"),
    (changed(5, robot="drone1"), "5: robot: 'drone1' is of kind 'tello': the task is for 'reader'"),
]


@pytest.mark.parametrize(("text", "message"), FAULTS, ids=[message for _, message in FAULTS])
def test_a_fault_is_named_by_line_key_and_value(text, message):
    with pytest.raises(FileError) as caught:
        from_text(text, "a.jsonl")
    assert str(caught.value).startswith(f"a.jsonl:{message}")
    assert (caught.value.source, caught.value.line) == ("a.jsonl", int(message.split(":")[0]))
    assert f":{caught.value.field}" in str(caught.value).replace(" ", "")


def test_a_file_that_is_no_text_is_refused(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(b'{"type": "trace"}\n\xff')
    with pytest.raises(FileError, match="a.jsonl:2: is not UTF-8"):
        read(tmp_path / "a.jsonl")
    with pytest.raises(OSError):
        read(tmp_path / "none.jsonl")


CAT = published()[0]


@pytest.mark.parametrize(
    "trace",
    [
        Trace("none", ()),
        Trace("negative", (Arrival(-1.0, "a", CAT, (1.0, 1.0)),)),
        Trace("never", (Arrival(float("nan"), "a", CAT, (1.0, 1.0)),)),
        Trace("order", tuple(Arrival(at, "a", CAT, (1.0, 1.0)) for at in (2.0, 1.0))),
        Trace("short", (Arrival(1.0, "a", CAT, (1.0,)),)),
        Trace("plan", (Arrival(1.0, "a", replace(CAT, tokens=("?s(",)), ()),)),
        Trace("halves of one character \ud800\udc00", (Arrival(1.0, "a", CAT, (1.0, 1.0)),)),
    ],
    ids=lambda trace: trace.name.split()[0],
)
def test_what_could_not_be_read_is_not_written(trace, tmp_path):
    with pytest.raises(FileError):
        write(trace, tmp_path / "a.jsonl")
    assert not (tmp_path / "a.jsonl").exists()


@given(st.text())
def test_no_text_brings_the_reader_down(text):
    with pytest.raises(FileError):
        from_text(text)


VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
KEYS = [(i, key) for i, line in enumerate(EXAMPLE.splitlines(), 1) for key in json.loads(line)]


@given(st.sampled_from(KEYS), VALUE)
def test_no_value_brings_the_reader_down(where, value):
    line, key = where
    lines = EXAMPLE.splitlines()
    lines[line - 1] = json.dumps(json.loads(lines[line - 1]) | {key: value})
    try:
        trace = from_text("\n".join(lines))
    except FileError as error:
        assert error.line in (line, *range(line, 6))
    else:
        assert from_text(to_text(trace)) == trace
