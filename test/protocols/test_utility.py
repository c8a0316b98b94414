"""Time utility: TimelyLLM's Eq. 1, its presets, and what is refused."""

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timely_llm.protocols.utility import PRESETS, TimeUtility, Urgency

UTILITIES = st.builds(
    TimeUtility,
    ert=st.floats(0, 100),
    alpha=st.floats(-100, 0),
    beta=st.floats(0, 100, exclude_min=True),
)


@pytest.mark.parametrize(
    ("t", "expected"), [(-1, 1), (0, 1), (1, 1), (1.25, 0.5), (1.5, 0), (2, -1)]
)
def test_normal_tasks_of_the_paper(t, expected):
    """Section 7.1: ERT 1 s, beta 1, alpha -2, which is zero at 1.5 s."""
    utility = PRESETS[Urgency.NORMAL]
    assert utility(t) == expected
    assert utility.cutoff == 1.5


def test_urgent_tasks_of_the_paper():
    """Section 7.1: ERT 0.2 s, beta 2, cut off at 0.5 s."""
    utility = PRESETS[Urgency.URGENT]
    assert (utility.ert, utility.beta) == (0.2, 2.0)
    assert utility.cutoff == pytest.approx(0.5, abs=1e-4)


def test_every_urgency_has_a_preset_and_more_urgent_is_worth_more_and_sooner():
    assert set(PRESETS) == set(Urgency) - {Urgency.UNSPECIFIED}
    row = [PRESETS[urgency] for urgency in sorted(PRESETS)]
    for urgent, less in zip(row, row[1:], strict=False):
        assert urgent.ert < less.ert
        assert urgent.alpha < less.alpha
        assert urgent.beta > less.beta
        assert urgent.cutoff < less.cutoff


@given(UTILITIES, st.floats(0, 1000), st.floats(0, 1000))
def test_never_rises_with_time_and_is_beta_until_ert(utility, first, second):
    early, late = sorted((first, second))
    assert utility(late) <= utility(early) <= utility.beta
    assert utility(utility.ert) == utility.beta


@given(UTILITIES)
def test_cutoff_is_where_utility_is_zero(utility):
    if utility.alpha == 0:
        assert utility.cutoff == math.inf
    elif math.isfinite(utility.cutoff) and utility.cutoff < 1e6:
        assert utility(utility.cutoff) == pytest.approx(0, abs=1e-6 * max(1, utility.beta))


def test_continuation_keeps_slope_and_height():
    assert TimeUtility(1.0, -2.0, 1.0).continuation() == TimeUtility(0.0, -2.0, 1.0)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ((-0.1, -1, 1), "utility.ert is -0.1 s: must be at least 0"),
        ((1, 0.5, 1), "utility.alpha is 0.5/s: must be at most 0"),
        ((1, -1, 0), "utility.beta is 0: must be above 0"),
        ((1, -1, -2), "utility.beta is -2: must be above 0"),
        ((1e308, -1, 1), "utility.ert is 1e+308: must be finite, -1e+06 to 1e+06"),
        ((math.nan, -1, 1), "utility.ert is nan: must be finite, -1e+06 to 1e+06"),
        ((1, -math.inf, 1), "utility.alpha is -inf: must be finite, -1e+06 to 1e+06"),
        ((1, -1, math.inf), "utility.beta is inf: must be finite, -1e+06 to 1e+06"),
    ],
)
def test_refusals_name_field_value_and_limit(fields, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        TimeUtility(*fields)


@given(*[st.floats(allow_nan=True, allow_infinity=True)] * 3, st.floats(0, 1e9))
def test_whatever_is_accepted_gives_a_number(ert, alpha, beta, t):
    try:
        utility = TimeUtility(ert, alpha, beta)
    except ValueError:
        return
    assert not math.isnan(utility(t))
    assert not math.isnan(utility.cutoff)
