"""The file of learned times: there and back, whatever it holds, and who keeps it."""

import functools
import json
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sim_parts import walker

from timely_llm.estimation.learned_times import Learned, Times
from timely_llm.estimation.times_file import read, text_of
from timely_llm.protocols.messages import SkillCall
from timely_llm.ros.times_keeper import TimesKeeper, words, write
from timely_llm.validation.reader import FileError


def times(count: int = 12) -> Times:
    """Two robots; one of them has become slower."""
    made, rng = Times(), random.Random(5)
    for name in ("one", "zwölf 'x'"):
        own = made.robot(name, walker())
        for i in range(count):
            factor = 1.5 if name == "one" and i >= count / 2 else 1.0
            call = SkillCall("go", (), (), rng.uniform(1, 9))
            own.observe(call, call.expected_duration * factor)
            made.changes += 1
    return made


GOOD = text_of(times().learned())


def changed(change) -> str:
    value = json.loads(GOOD)
    change(value)
    return json.dumps(value)


def test_there_and_back():
    learned = read(GOOD, "f")
    assert text_of(learned) == GOOD
    again = Times()
    again.restore(learned)
    for name in ("one", "zwölf 'x'", "new"):
        call = SkillCall("go", (), (), 4.0)
        kept, was = (t.robot(name, walker()).estimate(call) for t in (again, times()))
        assert kept == pytest.approx(was, rel=1e-4)
    assert read(text_of(Learned()), "f") == Learned()


def test_it_is_text_that_people_can_read():
    lines = GOOD.splitlines()
    assert lines[1] == '  "version": 1,'
    assert max(map(len, lines)) < 1500
    assert sum('"executions": [[' in line for line in lines) == 3


def test_a_drift_is_kept_too():
    drifted = read(text_of(times(60).learned()), "f").robots["one"]
    (own,) = drifted.values()
    assert own.drift.factor == pytest.approx(1.5)
    assert own.drift.usual == pytest.approx(0.0, abs=1e-6)


def first(value):
    return value["kinds"]["walker"]["go"][0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "f:1: is not JSON"),
        ('{\n "version": 1,\n oops', "f:3: is not JSON"),
        ("[1, 2]", "f: is not a file of learned times: it has no 'version'"),
        ("kind: walker\nskills: []\n", "f:1: is not JSON"),
        ('{"version": 2, "kinds": {}, "robots": {}}', "f: version is 2: this planner reads 1"),
        ('{"version": true, "kinds": {}, "robots": {}}', "version is true"),
        ('{"version": 1, "kinds": {}}', "f: 'robots' is missing"),
        ('{"version": 1, "kinds": {}, "robots": {}, "robot": 1}', "unknown key 'robot'; did you"),
        ("[" * 100_000, "f: is not JSON that can be read"),
        (changed(lambda v: v.update(kinds=[])), "f: kinds: is a list: must be a mapping"),
        (
            changed(lambda v: v["kinds"].update(walker=3)),
            "f: kinds.walker: is 3: must be a mapping",
        ),
        (changed(lambda v: first(v).pop("model")), "kinds.walker.go[0]: 'model' is missing"),
        (changed(lambda v: first(v).update(model=3)), "kinds.walker.go[0].model: is 3: must be"),
        (
            changed(lambda v: first(v)["executions"][3].pop()),
            "kinds.walker.go[0].executions[3]: has 2 entries: must have 3 to 3",
        ),
        (
            changed(lambda v: first(v)["executions"][3].__setitem__(1, -2)),
            "kinds.walker.go[0].executions[3][1]: is -2: must be 0.001 to 1e+06",
        ),
        (
            changed(lambda v: first(v)["executions"][0].__setitem__(0, math.nan)),
            "executions[0][0]: is NaN: must be a finite number",
        ),
        (
            changed(lambda v: first(v).update(executions=first(v)["executions"] * 9)),
            "executions: has 144 entries: must have 0 to 64",
        ),
        (
            changed(lambda v: v["robots"]["one"][0]["usual"].update(level="slow")),
            'robots.one[0].usual.level: is "slow": must be a finite number',
        ),
        (
            changed(lambda v: v["robots"]["one"][0]["usual"].update(factor=0)),
            "robots.one[0].usual.factor: is 0: must be",
        ),
    ],
)
def test_what_is_wrong_is_named(text, words):
    with pytest.raises(FileError) as error:
        read(text, "f")
    assert words in str(error.value)


@given(st.integers(0, len(GOOD) - 1), st.text(max_size=3), st.integers(0, 40))
def test_any_damage_is_an_error_or_a_sound_file(place, inserted, cut):
    text = GOOD[:place] + inserted + GOOD[place + cut :]
    try:
        learned = read(text, "f")
    except FileError as error:
        assert str(error).startswith("f")
        return
    made = Times()
    made.restore(learned)
    left = made.robot("one", walker()).estimate(SkillCall("go", (), (), 2.0))
    assert 0.0 < left.low <= left.mean < math.inf


# Who keeps it.


@pytest.fixture
def said():
    return []


def keeper(path, said) -> TimesKeeper:
    return TimesKeeper(path, said.append, said.append)


def test_a_file_is_written_whole_and_read_again(tmp_path, said):
    path = tmp_path / "new" / "times.json"
    keeper(path, said).finish(times().learned())
    assert path.read_text("utf-8") == GOOD
    assert [p.name for p in path.parent.iterdir()] == ["times.json"]
    again = Times()
    keeper(path, said).restore(again)
    assert text_of(again.learned()) == GOOD
    assert said == []


def test_without_a_path_or_a_file_there_is_nothing_to_say(tmp_path, said):
    for path in (None, tmp_path / "none.json"):
        made = Times()
        keeper(path, said).restore(made)
        keeper(path, said).restore(None)
        assert made.learned() == Learned({}, {})
    keeper(None, said).finish(times().learned())
    assert said == []


@pytest.mark.parametrize("content", [b"planner:\n  x: 1\n", b"\xff\xfe", GOOD[:100].encode()])
def test_a_foreign_file_is_said_once_and_left_as_it_is(tmp_path, said, content):
    path = tmp_path / "times.json"
    path.write_bytes(content)
    one, made = keeper(path, said), Times()
    one.restore(made)
    assert len(said) == 1
    assert said[0].startswith(f"parameter 'times_file': {path}")
    assert "going by the skill sets' durations" in said[0]
    assert one.problem == said[0]
    one.finish(times().learned())
    assert path.read_bytes() == content
    assert made.learned() == Learned({}, {})


def test_a_folder_is_no_file(tmp_path, said):
    one = keeper(tmp_path, said)
    one.restore(Times())
    assert str(tmp_path) in said[0]


def test_a_file_that_cannot_be_written_is_said_once_and_the_old_one_stays(tmp_path, said):
    blocked = tmp_path / "file"
    blocked.write_text("x")
    one = keeper(blocked / "times.json", said)
    for _ in range(2):
        one.finish(times().learned())
    assert len(said) == 1
    assert "cannot be written" in said[0]


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "times.json"
    write(path, "old")
    monkeypatch.setattr("os.fsync", lambda number: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        write(path, "new")
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["times.json"]


def test_slower_robots_are_said_and_shown_until_they_are_as_usual(tmp_path, said):
    one = keeper(None, said)
    one.drifted("r1", "mf", 1.52)
    assert words(one.drifts["r1"]) == "mf takes 1.52 times as long as it used to"
    one.drifted("r1", "mf", 1.0)
    assert words(one.drifts["r1"]) == ""
    assert said == [
        "robot 'r1': mf takes 1.52 times as long as it used to",
        "robot 'r1': mf takes as long as usual again",
    ]
    path = tmp_path / "times.json"
    path.write_text(text_of(times(60).learned()))
    other = keeper(path, said)
    other.restore(Times())
    assert list(other.drifts) == ["one"]


CANNOT_BE = (10**400, -(10**400), 10**4000, math.inf, math.nan, 1e308, None, True, "x", [], {})


def places(value, place=()):
    """Keys and indices of all values of a document."""
    yield place
    if isinstance(value, dict | list):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(part, (*place, key))


def test_a_value_that_cannot_be_is_refused_wherever_it_stands():
    """A number of 401 digits, which no float holds, among them."""
    document = json.loads(text_of(times().learned()))
    for *place, last in filter(None, places(document)):
        for bad in CANNOT_BE:
            changed = json.loads(json.dumps(document))
            entry = functools.reduce(lambda value, key: value[key], place, changed)
            entry[last] = bad
            try:
                Times().restore(read(json.dumps(changed), "f"))
            except FileError as error:
                assert str(error).startswith("f:")
