"""How a trace is replayed: what can be chosen."""

import pytest
from sim_cases import drawn, run

from timely_llm.simulation.setting import noisy, oracle


@pytest.mark.parametrize("make", [oracle, noisy])
def test_predictors_that_know_the_trace(make):
    what = drawn(3)
    result = run(what, "isrtf", 4, predictor=make, cut=600.0)
    assert all(goal.completed_at is not None for goal in result.outcomes)
    assert repr(run(what, "isrtf", 4, predictor=make, cut=600.0, together=False)) == repr(result)
