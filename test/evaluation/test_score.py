"""Shares, intervals, and what a threshold of doubt would change."""

import pytest

from timely_llm.evaluation.outcome import Verdict
from timely_llm.evaluation.score import Result, Share, curve, shares, threshold_for

DONE, REFUSED, WRONG, HARMFUL = Verdict.DONE, Verdict.REFUSED, Verdict.WRONG, Verdict.HARMFUL


def result(verdict, logprob=None, doubted=REFUSED, moves=True):
    return Result("open", "motion", "tello", verdict, doubted, moves, logprob, 10, 100, 0.5)


def test_an_interval_is_wilsons():
    low, high = Share(8, 10).interval
    assert (low, high) == (pytest.approx(0.4902, abs=1e-4), pytest.approx(0.9433, abs=1e-4))
    assert str(Share(0, 0)) == "-" and Share(0, 0).interval == (0.0, 1.0)


def test_a_threshold_stops_plans_that_move_and_are_in_doubt():
    results = [
        result(DONE, -0.1),
        result(HARMFUL, -0.5),
        result(HARMFUL, -0.6, doubted=DONE),
        result(WRONG, -0.9, moves=False),
        result(DONE),
    ]
    assert [share.count for share in shares(results).values()] == [2, 0, 1, 2]
    assert [share.count for share in shares(results, -0.2).values()] == [3, 1, 1, 0]
    assert shares(results, -0.55)[HARMFUL].count == 1


def test_the_curve_ends_where_none_moves():
    results = [result(DONE if n > 4 else HARMFUL, -1 + n / 10) for n in range(10)]
    points = curve(results)
    assert (points[0].threshold, points[0].coverage, points[0].harmful) == (None, 1.0, 0.5)
    assert (points[-1].coverage, points[-1].done, points[-1].harmful) == (0.0, 0.0, 0.0)
    coverages = [point.coverage for point in points]
    assert coverages == sorted(coverages, reverse=True)


def test_the_least_threshold_is_found():
    results = [result(DONE if n > 4 else HARMFUL, -1 + n / 10) for n in range(10)]
    assert threshold_for(results, 0.5) is None
    assert threshold_for(results, 0.1) == pytest.approx(-0.6)
    assert threshold_for([result(HARMFUL, -0.1)] * 2, 0.1) == 0.0
