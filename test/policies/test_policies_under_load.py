"""Every policy serves a whole load in a simulated fleet: every goal ends, and what it promises of
its steps holds there."""

import random

import pytest
from fleet_sim import FleetSim
from sim_parts import tokens_of

from timely_llm import policies
from timely_llm.core.config import PlannerConfig
from timely_llm.estimation.step_time import StepLatency
from timely_llm.protocols.messages import ErrorCode
from timely_llm.protocols.utility import Urgency

ROBOTS = 12
PLANS = {
    "one leg": "go(0.5)",
    "three legs": "go(0.5);go(1);go(0.3)",
    "look": "?see('cat'){go(0.4);say('cat')}go(0.2)",
    "a long way": ";".join(["go(0.2)"] * 12),
    "words": "say('a few words');go(0.6);say('and some more')",
}
TOTAL = {instruction: len(tokens_of(plan)) + 1 for instruction, plan in PLANS.items()}
QUICK = StepLatency((0.0218,), per_sequence=0.002, per_prefill_token=1e-4, source="test")


def load(policy: str, seed: int, **engine: object) -> FleetSim:
    """Events as in TimelyLLM's WID2: some robots at once get tasks, a third of them urgent."""
    config = PlannerConfig(max_tokens=100, network=0.008, heartbeat_timeout=60.0)
    sim = FleetSim(PLANS, policy, latency=QUICK, config=config, **engine)
    rng, at = random.Random(seed), 0.5
    for n in range(ROBOTS):
        sim.add_robot(f"r{n}")
    for _ in range(8):
        for n in rng.sample(range(ROBOTS), rng.randint(3, 9)):
            urgency = rng.choice([Urgency.URGENT, Urgency.NORMAL, Urgency.NORMAL])
            targets = rng.choice([{}, {"tpot": 0.1, "ttft": 1.0}])
            sim.goal(f"r{n}", rng.choice(list(PLANS)), at, urgency=urgency, **targets)
        at += rng.expovariate(1 / 2.0)
    return sim.finish()


@pytest.mark.parametrize("name", policies.names())
def test_every_goal_of_a_load_ends_executed(name):
    sim = load(name, seed=1)
    assert len(sim.results) > 30
    assert {result.error_code for result in sim.results.values()} == {ErrorCode.NONE}
    for plan_id, result in sim.results.items():
        assert result.plan == PLANS[sim.goals[plan_id].instruction]
        assert result.generated_tokens == TOTAL[sim.goals[plan_id].instruction]


@pytest.mark.parametrize("name", policies.names())
def test_every_goal_ends_where_memory_is_for_two_or_three(name):
    """Longest plans need 26 blocks of 4; 60 are for all and the fixed prompt."""
    sim = load(name, seed=2, kv_blocks=60, max_model_len=120)
    assert {result.error_code for result in sim.results.values()} == {ErrorCode.NONE}
    assert sim.planner.recomputed_tokens > 0  # or memory was no matter


@pytest.mark.parametrize("name", policies.names())
def test_the_same_load_gives_the_same_log(name):
    first, second = load(name, seed=3), load(name, seed=3)
    assert first.log == second.log
    assert first.busy == second.busy
