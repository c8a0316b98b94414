"""Durations learned from robots' reports: of which skills, of whom, and what is kept."""

import pytest
from learned_cases import go, learned
from sim_parts import walker

from timely_llm.estimation import learned_times
from timely_llm.estimation.learned_times import Learned, Times, model_of
from timely_llm.estimation.skill_time import Estimate as E
from timely_llm.estimation.times_file import text_of
from timely_llm.protocols.messages import SkillCall


def test_only_timed_skills_are_learned_under_either_name():
    own = Times().robot("r1", walker())
    assert sorted(own.skills) == ["find", "go"]
    assert own.observe(SkillCall("say", ("hi",), ("hi",), 0.001), 9.0) is None
    assert own.estimate(SkillCall("say", expected_duration=0.001)) == E(0.001, 0.001)
    assert own.estimate(SkillCall("who knows", expected_duration=4.0)) == E(4.0, 4.0)
    for name in ("go", "walk"):
        own.observe(SkillCall(name, (), (), 2.0), 6.0)
    assert own.estimate(go(2.0)).low == pytest.approx(6.0)


def test_evaluated_arguments_count_and_nonsense_does_not():
    own = Times().robot("r1", walker())
    assert own.expected(go(99.0, "2.5")) == 2.5
    assert own.expected(go(3.0, "many")) == 3.0  # not what the skill set has
    assert own.expected(go(3.0, "1", "2")) == 3.0
    assert own.expected(go(float("nan"))) == own.expected(go(-1.0)) == 0.0
    for elapsed in (float("nan"), float("inf"), -1.0):
        assert own.observe(go(2.0), elapsed) is None
    assert own.estimate(go(2.0)) == E(2.0, 2.0)


def test_a_robot_that_comes_back_is_known_and_a_new_one_is_as_its_kind():
    times = learned(3.0)
    assert times.robot("r1", walker()).estimate(go(2.0)).low == pytest.approx(6.0)
    assert times.robot("r2", walker()).estimate(go(2.0)).low == pytest.approx(6.0)
    other = times.robot("r3", walker(kind="runner"))
    assert other.estimate(go(2.0)) == E(2.0, 2.0)


def test_what_was_kept_goes_on_where_it_was():
    times = learned(3.0)
    other = Times()
    other.restore(times.learned())
    for robot in ("r1", "r2"):
        kept = other.robot(robot, walker()).estimate(go(2.0))
        assert kept == pytest.approx(times.robot(robot, walker()).estimate(go(2.0)))
    assert text_of(other.learned()) == text_of(times.learned())


def test_what_is_not_seen_again_is_not_lost_and_a_changed_time_model_is():
    before = Times()
    before.restore(learned(3.0).learned())
    assert before.learned().kinds == learned(3.0).learned().kinds
    assert before.learned().robots.keys() == {"r1"}
    before.robot("r9", walker())  # the kind is seen again, the robot is not
    assert before.learned().robots.keys() == {"r1"}
    key = ("walker", "find", "constant 4")
    assert model_of(walker()["find"].duration) == "constant 1"
    stale = Times()
    stale.restore(Learned({key: learned(3.0).learned().kinds[next(iter(before.learned().kinds))]}))
    stale.robot("r1", walker())
    assert stale.learned() == Learned({}, {})


def test_news_are_told_once():
    times = learned(3.0)
    times.changes = 16
    assert times.news().kinds == times.learned().kinds
    assert times.news() is None


@pytest.mark.parametrize("quantile", [0.0, -0.1, 0.51, float("nan")])
def test_a_quantile_is_a_lower_one(quantile):
    with pytest.raises(ValueError, match="quantile is"):
        Times(quantile)


def test_of_kinds_without_end_the_last_are_known(monkeypatch):
    """Each robot may bring a skill set of its own, under ever new names."""
    monkeypatch.setattr(learned_times, "MOST_SKILLS", 4)
    times = Times()
    own = [times.robot("r1", walker(kind=f"walker_{number}")) for number in range(9)]
    for robot in own * 2:
        robot.observe(go(2.0), 6.0)
    assert {kind for kind, _, _ in times.learned().kinds} == {"walker_7", "walker_8"}
    assert set(times.learned().robots["r1"]) <= set(times.learned().kinds)
    assert times.robot("r2", walker(kind="walker_8")).estimate(go(2.0)).low == pytest.approx(6.0)
