"""The search for the load at which a policy has the paper's utility."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timely_llm.bench.search import NoSuchLoad, load_of


@pytest.mark.parametrize("root", [0.05, 0.7, 1.0, 3.3, 40.0])
def test_the_load_is_found_by_few_runs(root):
    asked = []

    def utility(load):
        asked.append(load)
        return 1.4 - 0.66 * load / root

    load = load_of(utility)
    assert load == pytest.approx(root, rel=0.01)
    assert abs(utility(load) - 0.74) <= 0.002
    assert len(asked) < 20


def test_a_jump_ends_the_search_at_the_nearest_load_met():
    load = load_of(lambda load: 0.80 if load < 2.5 else 0.5)
    assert load < 2.5 and load == pytest.approx(2.5, rel=0.01)


@pytest.mark.parametrize(("utility", "words"), [(1.2, "still 1.200"), (0.1, "only 0.100")])
def test_a_utility_that_is_never_met_is_an_error(utility, words):
    with pytest.raises(NoSuchLoad, match=words):
        load_of(lambda load: utility)


@given(st.floats(0.02, 200), st.floats(0.05, 5), st.floats(0, 0.02))
def test_the_search_ends_whatever_the_noise(root, slope, noise):
    asked = []

    def utility(load):
        asked.append(load)
        return 0.74 - slope * math.log(load / root) + noise * math.sin(1e3 * load)

    assert load_of(utility) in asked
    assert len(asked) <= 30
