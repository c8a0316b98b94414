"""Steps taken together: the same run as one by one, in fewer turns of the planner."""

import itertools

from hypothesis import example, given, settings
from hypothesis import strategies as st
from sim_cases import ENGINE, SKILLS, drawn, run, task, trace

from timely_llm import policies
from timely_llm.simulation.loop import Setting, simulated


@example(24, "least_loss", 2, None, 0.0)  # the choice ends inside the steps taken together
@settings(max_examples=30, deadline=None)
@given(
    st.integers(0, 10**6),
    st.sampled_from(policies.names()),
    st.integers(1, 6),
    st.sampled_from((None, 400, 1600)),
    st.sampled_from((0.0, 0.002)),
)
def test_steps_taken_together_are_the_steps_one_by_one(seed, policy, batch, kv_tokens, overhead):
    what = drawn(seed)
    fields = {"kv_tokens": kv_tokens, "decision_overhead": overhead, "cut": 5.0}
    together = run(what, policy, batch, **fields)
    assert repr(run(what, policy, batch, together=False, **fields)) == repr(together)


def test_steps_are_taken_together():
    """One text alone, 61 tokens: a few turns of the loop instead of one for each step."""
    what = trace((0.0, task(" ".join("a" * 31), "text")))
    turns = {}
    for together in (True, False):
        setting = Setting("edf", ENGINE, 1, skills=SKILLS, together=together)
        replay = simulated(what, setting)
        once, count = replay.driver.turn, itertools.count()
        replay.driver.turn = lambda *now, once=once, count=count: (next(count), once(*now))[1]
        assert replay.run().steps == 61
        turns[together] = next(count)
    assert turns[False] >= 61 > 10 > turns[True]
