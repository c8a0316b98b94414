"""Skills: argument checks, durations as published, what is derived from a skill set."""

import math
import random
from dataclasses import FrozenInstanceError, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plan_language import INDY7, KINDS, ROVER, TASKS, TELLO

from timely_llm.language.grammar import plan_grammar
from timely_llm.language.segmenter import plan_detector
from timely_llm.language.skills import Argument, SkillCallError, SkillSet, value_text

RNG = random.Random(0)


def refused(skills, name: str, *values) -> str:
    with pytest.raises(SkillCallError) as caught:
        skills[name].check(values)
    return str(caught.value)


# ---- checks ----------------------------------------------------------------------------------


def test_a_call_within_the_limits_gives_the_values_as_the_skill_takes_them():
    assert TELLO["mf"].check([20]) == (20,)
    assert TELLO["move_forward"].check([500.0]) == (500,)
    assert type(TELLO["mf"].check([500.0])[0]) is int
    assert type(TELLO["d"].check([1])[0]) is float
    assert TELLO["g"].check([True]) == ("True",)
    assert TELLO["g"].check([2.5]) == ("2.5",)
    assert TELLO["mf"].check([None]) == (None,)
    assert ROVER["st"].check([-35, None]) == (-35, None)
    assert ROVER["sp"].check(["B7yy"]) == ("B7yy",)
    assert TELLO["tp"].check([]) == ()


@pytest.mark.parametrize(
    ("skills", "name", "values", "said"),
    [
        (TELLO, "mf", [], "mf: 0 arguments given, takes 1 (distance)"),
        (TELLO, "tp", [1], "tp: 1 arguments given, takes none"),
        (ROVER, "st", [1], "st: 1 arguments given, takes 2 (angle, speed)"),
        (TELLO, "mf", [19], "mf: distance is 19 cm: must be 20 to 500 cm"),
        (TELLO, "mf", [501], "mf: distance is 501 cm: must be 20 to 500 cm"),
        (TELLO, "mf", [math.nan], "mf: distance is nan cm: must be 20 to 500 cm"),
        (TELLO, "mf", [math.inf], "mf: distance is inf cm: must be 20 to 500 cm"),
        (TELLO, "mf", [20.5], "mf: distance is 20.5 cm: must be a whole number"),
        (TELLO, "mf", [True], "mf: distance is True: must be a number"),
        (TELLO, "mf", ["50"], "mf: distance is '50': must be a number"),
        (TELLO, "d", [0.09], "d: seconds is 0.09 s: must be 0.1 to 60 s"),
        (TELLO, "g", [""], "g: object has 0 characters: must have 1 to 32 characters"),
        (TELLO, "g", ["x" * 33], "g: object has 33 characters: must have 1 to 32 characters"),
        (TELLO, "g", ["a\nb"], "g: object holds a control character"),
        (ROVER, "sp", ["D1"], "sp: tag is 'D1': must match [A-C][0-9]{1,2}(x|yy)?"),
        (ROVER, "sp", ["A1x "], "sp: tag is 'A1x ': must match [A-C][0-9]{1,2}(x|yy)?"),
    ],
)
def test_a_call_outside_names_skill_argument_and_limit(skills, name, values, said):
    assert refused(skills, name, *values) == said


@given(st.integers() | st.floats() | st.booleans() | st.text(max_size=40))
def test_what_passes_a_check_is_within_the_limits(value):
    for argument in (
        Argument("a", "int", "", -3, 7),
        Argument("a", "float", "", -0.5, 1.5),
        Argument("a", "str", "", 2, 5),
    ):
        try:
            checked = argument.check(value, "x")
        except SkillCallError:
            continue
        size = len(checked) if argument.type == "str" else checked
        assert argument.minimum <= size <= argument.maximum
        assert type(checked).__name__ == argument.type
        assert argument.parse(value_text(checked)) == checked


def test_evaluated_arguments_are_read_back():
    assert TELLO["mf"].parse_values(["100"]) == (100,)
    assert ROVER["st"].parse_values(["-5", "0.5"]) == (-5, 0.5)
    assert TELLO["g"].parse_values(["100"]) == ("100",)
    assert [value_text(v) for v in (None, True, 3, 2.0, 0.1, 1 / 3, "a")] == [
        "", "True", "3", "2", "0.1", "0.3333333333333333", "a",
    ]  # fmt: skip


# ---- durations -------------------------------------------------------------------------------


def published(formula: str, value: float) -> tuple[float, float]:
    """Least and greatest duration of a formula of the published table."""
    if "choice" in formula:
        step = float(formula.split(" of ")[1].split("*")[0])
        return step, 8 * step
    if "uniform" in formula:
        low, high = formula.split("/")[0].removeprefix("uniform ").split("..")
        return float(low), float(high)
    total = 0.0
    for term in formula.replace(" - ", " + -").split(" + "):
        factor, _, power = term.partition("*v^")
        factor, linear, _ = factor.partition("*v")
        exponent = int(power) if power else int(bool(linear))
        total += value if factor == "v" else float(factor) * value**exponent
    return total, total


TIMES = {
    (skills.kind, name): formula
    for skills, table in ((TELLO, "drone_tello"), (INDY7, "arm_indy7"))
    for names, formula in TASKS["execution_time"][table].items()
    for name in names.split("/")[0].split()
}


def test_every_skill_has_a_published_duration():
    assert set(TIMES) == {(s.kind, n) for s in (TELLO, INDY7) for n in s.names}


@pytest.mark.parametrize(("kind", "name"), TIMES)
def test_durations_are_the_published_ones(kind, name):
    skill = KINDS[kind][name]
    numbers = [a for a in skill.arguments if a.type != "str"]
    for share in (0, 0.1, 0.5, 1):
        value = numbers[0].minimum + share * (numbers[0].maximum - numbers[0].minimum) \
            if numbers else 0  # fmt: skip
        least, most = published(TIMES[kind, name], value)
        values = [value if argument.type != "str" else "cat" for argument in skill.arguments]
        assert skill.expected_duration(values) == pytest.approx(least)  # the paper: the minimum
        samples = [skill.sample_duration(values, RNG) for _ in range(400)]
        assert least - 1e-9 <= min(samples) <= max(samples) <= most + 1e-9
        if least < most:
            assert min(samples) < least + 0.2 * (most - least)
            assert max(samples) > most - 0.2 * (most - least)
        assert skill.duration.least <= least + 1e-9
        assert skill.duration.most >= most - 1e-6


def test_choices_are_drawn_alike_and_from_the_generator_alone():
    draws = [TELLO["s"].sample_duration(["a"], random.Random(7)) for _ in range(3)]
    assert len(set(draws)) == 1
    counts = [0] * 9
    for _ in range(8000):
        counts[round(TELLO["s"].sample_duration(["a"], RNG) / 1.5275)] += 1
    assert counts[0] == 0
    assert all(850 < count < 1150 for count in counts[1:])


def test_an_argument_that_is_not_known_counts_with_the_least():
    assert TELLO["mf"].expected_duration([None]) == pytest.approx(1.8144 + 0.0072 * 20)
    assert TELLO["mf"].expected_duration() == pytest.approx(1.8144 + 0.0072 * 20)
    assert TELLO["d"].expected_duration([None]) == pytest.approx(0.1)
    assert TELLO["mu"].expected_duration([None]) <= min(
        TELLO["mu"].expected_duration([v]) for v in range(20, 501)
    )


def test_timed_skills_are_those_that_may_take_50_ms():
    timed = {s.kind: " ".join(sorted(k.name for k in s.skills if k.timed)) for s in KINDS.values()}
    assert timed == {
        "tello": "d g mb md mf ml mr mu s sa tc tu",
        "indy7": "d dr gt pi sc",
        "rover": "dv sp st",
    }
    brink = replace(TELLO["tp"], duration=replace(TELLO["tp"].duration, most=0.05))
    assert brink.timed


# ---- what comes from one file ----------------------------------------------------------------


def test_one_file_gives_listing_segments_grammar_and_checks():
    listing = ROVER.listing().split("\n")
    assert listing[0] == (
        "dv(distance: float -2.5..12.3 m): drive, drive forward, backward if negative"
    )
    assert listing[2] == (
        "sp(tag: str, like [A-C][0-9]{1,2}(x|yy)?) -> bool: spray, spray a plant by its tag"
    )
    assert len(listing) == len(ROVER.skills)
    assert plan_detector(ROVER).feed("bt();dv(1);spray('A1')") == ["bt();dv(1)", ";spray('A1')"]
    assert '"dv"' in plan_grammar(ROVER)
    assert refused(ROVER, "dv", 12.4) == "dv: distance is 12.4 m: must be -2.5 to 12.3 m"


def test_skills_are_found_by_both_names():
    assert TELLO["mf"] is TELLO["move_forward"]
    assert TELLO.get("fly") is None
    assert "mf" in TELLO and "move_forward" in TELLO and "fly" not in TELLO and 3 not in TELLO
    assert set(TELLO.callable_names) == {n for s in TELLO.skills for n in (s.name, s.long_name)}
    with pytest.raises(KeyError):
        TELLO["fly"]


def test_a_name_wins_over_another_skills_long_name():
    """Files cannot say so; a set made by hand still has one meaning."""
    first, second = replace(TELLO["mf"], long_name="mb"), TELLO["mb"]
    assert SkillSet("x", "", (first, second))["mb"] is second
    assert SkillSet("x", "", (second, first))["mb"] is second


def test_values_are_frozen():
    with pytest.raises(FrozenInstanceError):
        TELLO["mf"].name = "x"
    with pytest.raises(FrozenInstanceError):
        TELLO.kind = "x"
