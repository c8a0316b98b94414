"""Overload: goals that would be worth nothing when answered are refused, or served late."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from fleet_sim import FleetSim

from timely_llm.core.config import PlannerConfig
from timely_llm.core.overload import expected_response, reason_to_refuse
from timely_llm.estimation import presets as engine_presets
from timely_llm.estimation.step_time import StepLatency
from timely_llm.protocols.messages import ErrorCode
from timely_llm.protocols.utility import PRESETS, TimeUtility, Urgency
from timely_llm.simulation.loop import Setting, simulate
from timely_llm.simulation.workloads import published as workloads

LATENCY = StepLatency((0.02,), per_sequence=0.01, per_prefill_token=0.001)
NORMAL, URGENT = PRESETS[Urgency.NORMAL], PRESETS[Urgency.URGENT]


def writing(utility: TimeUtility, uncached: int = 0, written: int = 0, segments: int = 0):
    """A plan as far as the estimate looks, and its robot, whose segments have 5 tokens."""
    plan = SimpleNamespace(
        unsent=not segments, utility=utility, uncached=uncached, segment_tokens=written
    )
    return plan, SimpleNamespace(lengths=SimpleNamespace(mean=5.0))


# The estimate, by hand: steps of 0.02 s, 0.03 s for two, 0.04 s for three.


def test_alone_it_takes_its_own_tokens():
    assert expected_response([], NORMAL, 5.0, LATENCY, 4) == (pytest.approx(0.1), 0)


def test_one_before_it_shares_its_steps_and_has_its_prompt_first():
    """0.1 s of prompt, then 5 steps of 0.03 s for both."""
    response, ahead = expected_response([writing(NORMAL, uncached=100)], NORMAL, 5.0, LATENCY, 4)
    assert (response, ahead) == (pytest.approx(0.25), 1)


def test_a_prompt_is_taken_to_be_computed_alone():
    """No sequence decodes beside it, and none has context to read."""
    asked = []

    def latency(batch, prefill, kv):
        asked.append((batch, prefill, kv))
        return 0.1

    expected_response([writing(NORMAL, uncached=100)], NORMAL, 5.0, latency, 4)
    assert asked == [(0, 100, 0), (2, 0, 0)]


@pytest.mark.parametrize(("network", "refused"), [(0.0, False), (0.5, True)])
def test_the_way_to_the_robot_counts(network, refused):
    """0.4 s until a first segment of 20 tokens is written; worth nothing after 0.8 s."""
    utility = TimeUtility(0.2, -1.0, 0.6)
    assert utility.cutoff == pytest.approx(0.8)
    plan, robot = (
        SimpleNamespace(utility=utility),
        SimpleNamespace(lengths=SimpleNamespace(mean=20.0)),
    )
    assert bool(reason_to_refuse([], plan, robot, LATENCY, 4, network)) is refused


def test_what_is_written_of_a_segment_is_not_written_again():
    """3 + 5 tokens, two in a step: 5 steps at least, as its own are 5; alone 8 steps."""
    some = [writing(NORMAL, written=2)]
    assert expected_response(some, NORMAL, 5.0, LATENCY, 4)[0] == pytest.approx(5 * 0.03)
    assert expected_response(some, NORMAL, 5.0, LATENCY, 1)[0] == pytest.approx(8 * 0.02)


def test_those_that_lose_less_and_those_that_have_their_first_segment_are_not_waited_for():
    some = [writing(NORMAL, uncached=500), writing(URGENT, segments=1)]
    assert expected_response(some, URGENT, 5.0, LATENCY, 4) == (pytest.approx(0.1), 0)


def test_more_than_fit_go_in_turns():
    """20 tokens of four goals and 5 of its own, two in a step of 0.03 s."""
    some = [writing(URGENT) for _ in range(4)]
    assert expected_response(some, NORMAL, 5.0, LATENCY, 2) == (pytest.approx(12.5 * 0.03), 4)


# In the planner.

COUNT = 30


def burst(overload: str, **fields) -> tuple[FleetSim, list[str]]:
    """COUNT robots ask at once on an engine of batch 2."""
    sim = FleetSim({"x" * 30: "go(1);go(1)"}, "least_loss", config=PlannerConfig(overload=overload),
                   max_batch=2)  # fmt: skip
    for number in range(COUNT):
        sim.add_robot(f"r{number}")
    sim.run(1.0)
    goals = [sim.goal(f"r{n}", "x" * 30, **fields) for n in range(COUNT)]
    return sim.finish(), goals


def test_at_overload_goals_are_refused_with_code_and_figures():
    sim, goals = burst("refuse")
    codes = [sim.result(goal).error_code for goal in goals]
    refused = [goal for goal in goals if sim.result(goal).error_code is ErrorCode.OVERLOADED]
    assert set(codes) == {ErrorCode.NONE, ErrorCode.OVERLOADED}
    assert codes == sorted(codes)  # the first to come are served
    for goal in refused:
        result = sim.result(goal)
        served = len(goals) - len(refused)
        assert result.error_msg.startswith(
            f"the engine is overloaded: {served} goals go first, so an answer is expected after"
        )
        assert result.error_msg.endswith("s at the soonest: it is worth nothing after 1.50 s")
        assert sim.segments(goal) == []
        assert [line.split()[1] for line in sim.story(goal)] == ["ACCEPTED", "REFUSED"]
    late = [sim.result(goal).response_time for goal in goals if goal not in refused]
    assert max(late) < 1.5 + 0.3  # the estimate is a rough one, but no fairy tale


def test_by_default_everybody_is_served_however_late():
    sim, goals = burst(PlannerConfig().overload)
    assert all(sim.result(goal).error_code is ErrorCode.NONE for goal in goals)
    assert max(sim.result(goal).response_time for goal in goals) > 1.5


def test_one_whose_utility_never_ends_is_never_refused():
    sim, goals = burst("refuse", utility=TimeUtility(0.1, 0.0, 1.0))
    assert all(sim.result(goal).error_code is ErrorCode.NONE for goal in goals)


def test_the_urgent_are_not_refused_for_the_crowd_behind_them():
    sim = FleetSim({"x" * 30: "go(1)"}, "least_loss", config=PlannerConfig(overload="refuse"),
                   max_batch=2)  # fmt: skip
    for number in range(COUNT + 1):
        sim.add_robot(f"r{number}")
    sim.run(1.0)
    for number in range(COUNT):
        sim.goal(f"r{number}", "x" * 30)
    urgent = sim.goal(f"r{COUNT}", "x" * 30, urgency=Urgency.URGENT)
    sim.finish()
    assert sim.result(urgent).error_code is ErrorCode.NONE


def test_a_robot_whose_goal_was_refused_takes_the_next():
    sim, _ = burst("refuse")
    again = sim.goal(f"r{COUNT - 1}", "x" * 30)
    sim.finish()
    assert sim.result(again).error_code is ErrorCode.NONE


def test_the_simulator_refuses_only_where_it_is_told_to():
    trace = workloads.make("wid2", load=40.0)
    trace = replace(trace, arrivals=trace.arrivals[:150])
    engine = engine_presets.get("rtx4090-llama3-8b")
    refused = {}
    for refusals in (False, True):
        run = simulate(trace, Setting("least_loss", engine, 8, refusals=refusals))
        refused[refusals] = [outcome.refused for outcome in run.outcomes]
        assert len(run.outcomes) == 150
        served = [outcome.response_s for outcome in run.outcomes if not outcome.refused]
        assert None not in served
    assert not any(refused[False])
    assert 10 < sum(refused[True]) < 140


def test_another_word_is_an_error_with_the_nearest():
    with pytest.raises(ValueError, match=r"overload is 'refused': .*did you mean 'refuse'\?"):
        PlannerConfig(overload="refused")
