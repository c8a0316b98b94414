"""How goals of a run end, and how their utility is counted."""

from sim_cases import UTILITY, run, task, trace

from timely_llm.estimation.presets import EngineModel
from timely_llm.estimation.step_time import StepLatency
from timely_llm.protocols.utility import TimeUtility, Urgency


def test_a_goal_without_a_segment_scores_its_utility_at_the_cut():
    slow = EngineModel("slow", StepLatency((10.0,)), kv_tokens=4000)
    result = run(trace((0.0, task()), (5.0, task())), engine=slow, cut=20.0)
    first, second = result.outcomes
    assert result.cut_at == 25.0
    # The first token comes with the prompt, in no time; the fourth at 30 s.
    assert (first.response_s, second.response_s) == (None, None)
    assert first.utility == UTILITY(25.0)
    assert second.utility == UTILITY(20.0)
    assert (first.completed_at, first.waiting_s, first.met) == (None, 25.0, False)


def test_a_segment_on_its_way_at_the_cut_does_not_count():
    one = trace((0.0, task()))
    assert run(one, cut=0.079).outcomes[0].response_s is not None
    assert run(one, cut=0.077).outcomes[0].response_s is None


def test_refusals_are_off_unless_asked_for_and_stay_in_n():
    """Twenty urgent goals at once, one after the other: for most it would be too late."""
    worth = {"urgency": Urgency.URGENT, "utility": TimeUtility(0.2, -6.0, 2.0)}
    what = trace(*[(0.0, task(**worth))] * 20)
    assert not any(goal.refused for goal in run(what, "edf").outcomes)
    result = run(what, "edf", refusals=True)
    refused = [goal for goal in result.outcomes if goal.refused]
    assert 0 < len(refused) < len(result.outcomes) == 20
    assert {goal.error_code.name for goal in refused} == {"OVERLOADED"}
    assert {goal.utility for goal in refused} == {worth["utility"](60.0)}


def test_a_time_budget_is_the_only_target_of_a_goal_that_has_one():
    """SLICE, section VI-A: a real-time task is in time where its answer is, whatever its first
    token and its rate."""
    late = {"ttft": 0.001, "tpot": 0.001}
    for budget, kept in ((10.0, True), (0.01, False)):
        one = trace((0.0, task(**late, time_budget=budget)))
        assert run(one).outcomes[0].slo_met is kept
    assert not run(trace((0.0, task(**late)))).outcomes[0].slo_met
