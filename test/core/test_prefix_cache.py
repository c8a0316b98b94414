"""The planner and the KV cache: blocks that run out, fixed prompts, registrations in chunks.

Times as in ``test_planner.py``.
"""

import pytest
from fleet_sim import FleetSim
from planner_cases import PLANS, choosing, config, sim
from sim_parts import walker

from timely_llm import policies
from timely_llm.policies import Decision
from timely_llm.protocols.messages import ErrorCode
from timely_llm.protocols.utility import Urgency

# Blocks run out.


def test_an_evicted_plan_is_computed_again_and_its_text_is_the_same():
    """Two plans of up to 8 blocks in a pool of 14, beside the fixed prompt."""
    run = sim("r1", "r2", max_batch=2, kv_blocks=14, config=config(max_tokens=40))
    p = run.goal("r1", "long", at=1.0)
    q = run.goal("r2", "long", at=1.0)
    run.finish()
    assert run.story(p, q, kinds="EVICTED") != []
    assert run.planner.recomputed_tokens > 0
    for plan in (p, q):
        assert "".join(run.segments(plan)) == run.result(plan).plan == PLANS["long"]
        assert run.result(plan).error_code is ErrorCode.NONE
    ended = {e.plan_id: e for e in run.events if e.type.name == "ENDED"}
    assert sum(e.recomputed_tokens for e in ended.values()) == run.planner.recomputed_tokens
    assert all(e.stamp >= 1.0 for e in run.events)


@pytest.mark.parametrize("lag", [False, True])
def test_a_plan_without_blocks_is_shown_as_one_to_be_computed(lag):
    """With ``lag`` a token may come in the very step in which its plan loses its blocks."""
    seen = []

    def choose(now, views, state) -> Decision:
        seen.extend(view for view in views if view.kv_tokens == 0 and view.segment > 0)
        return policies.get("timely").choose(now, views, state)

    robots = ["r1", "r2", "r3", "r4"]
    options = {"kv_blocks": 16, "lag": lag, "config": config(max_tokens=40)}
    run = choosing(choose, *robots, **options)
    for number, robot_id in enumerate(robots):
        run.goal(robot_id, "long", at=1.0 + 0.01 * number)
    run.finish()
    assert seen != []
    assert min(view.uncached for view in seen) >= 7  # its own words and a segment


@pytest.mark.parametrize("policy", policies.names())
@pytest.mark.parametrize("lag", [False, True])
def test_every_policy_gets_all_plans_through_a_pool_that_is_too_small(policy, lag):
    robots = ["r1", "r2", "r3", "r4"]
    run = sim(*robots, policy=policy, kv_blocks=16, lag=lag, config=config(max_tokens=40))
    ids = [run.goal(robot_id, "long", at=1.0 + 0.01 * n) for n, robot_id in enumerate(robots)]
    run.finish()
    assert [run.result(plan).plan for plan in ids] == [PLANS["long"]] * 4
    assert {run.result(plan).error_code for plan in ids} == {ErrorCode.NONE}
    assert run.planner.recomputed_tokens > 0


def test_a_goal_that_never_fits_beside_the_fixed_prompts_is_refused():
    plans = {"a": "go(1)", "far too long": "go(1)"}
    run = sim(kv_blocks=15, config=config(max_tokens=40), plans=plans)
    fits = run.goal("r1", "a", at=1.0)
    plan = run.goal("r1", "far too long", at=1.0)
    run.finish()
    result = run.result(plan)
    assert result.error_code is ErrorCode.INVALID_GOAL
    assert result.error_msg == (
        "instruction (12 characters) and scene (0 characters) are too long: "
        "prompt of 18 tokens and max_tokens 40 need 14 KV blocks: there are 13 beside the robots' "
        "fixed prompts"
    )
    assert run.result(fits).error_code is ErrorCode.NONE
    assert [name[:3] for name in run.engine._live] == ["pin"]


# Fixed prompts and registrations.


def long_prompt(tokens: int):
    return [walker(), walker("x" * tokens, kind="new")]


def test_a_registration_with_a_long_prompt_is_computed_in_chunks():
    run = FleetSim(PLANS, kinds=long_prompt(300), config=config(prefill_chunk=64))
    run.add_robot("r2", kind="new", at=1.0)
    run.run(3.0)
    steps = [end - begin for begin, end in run.busy]
    assert steps == pytest.approx([0.064] * 4 + [0.044])
    assert run.planner.state.prefixes.missing == ()


def test_an_urgent_goal_waits_for_one_chunk_of_a_registration_at_most():
    run = FleetSim(PLANS, kinds=long_prompt(300), config=config(prefill_chunk=64))
    run.add_robot("r1")
    run.add_robot("r2", kind="new", at=1.0)
    plan = run.goal("r1", "b", at=1.03, urgency=Urgency.URGENT)
    run.finish()
    tokens = [end for begin, end in run.busy if begin >= 1.03]
    # Received at 1.03, inside the first chunk, which ends at 1.064; alone its first token takes
    # 3 ms. Then each of its steps has a chunk beside it, but never its own prompt.
    assert run.story(plan)[1] == "1.064 STARTED"
    assert tokens[0] == pytest.approx(1.067)
    assert run.busy[-1][1] > 1.3
    assert run.result(plan).response_time == pytest.approx(0.034 + 0.003 + 3 * 0.084)


def test_a_goal_whose_fixed_prompt_is_not_computed_yet_lets_others_go_first():
    run = FleetSim(PLANS, kinds=long_prompt(300), config=config(prefill_chunk=64))
    run.add_robot("r1")
    run.add_robot("r2", kind="new", at=1.0)
    cold = run.goal("r2", "a", at=1.005)
    urgent = run.goal("r1", "b", at=1.03, urgency=Urgency.URGENT)
    run.finish()
    first = {e.plan_id: e.stamp for e in reversed(run.events) if e.type.name == "SEGMENT"}
    assert first[urgent] < first[cold]
    assert run.result(urgent).response_time == pytest.approx(0.034 + 0.003 + 3 * 0.084)
    assert run.result(cold).error_code is ErrorCode.NONE
    assert run.planner.state.prefixes.missing == ()


def test_goals_pay_only_for_their_own_words():
    run = FleetSim(PLANS, kinds=long_prompt(400))
    run.add_robot("r1", kind="new")
    plan = run.goal("r1", "b", at=2.0)
    run.finish()
    assert run.result(plan).prompt_tokens == 401
    assert run.result(plan).response_time == pytest.approx(0.001 * (401 - 396) + 3 * 0.02)
