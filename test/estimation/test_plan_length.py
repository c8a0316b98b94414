"""How long a plan will be: past lengths, the oracle, and an oracle with ELIS's error."""

import math

import pytest

from timely_llm.estimation.plan_length import Noisy, Oracle, PastLengths, PredictorView


def sight(number: int = 1, tokens: int = 0, kind: str = "drone") -> PredictorView:
    return PredictorView(f"{number:032x}", number, kind, "find the cat", "", "x" * tokens, tokens)


def test_past_lengths_by_hand():
    predictor = PastLengths(64.0)
    assert [predictor.remaining(sight(tokens=n)) for n in (0, 60, 90)] == [64.0, 4.0, 1.0]
    for length in (10, 30, 50):
        predictor.ended(sight(tokens=length))
    assert predictor.remaining(sight()) == 30.0
    assert predictor.remaining(sight(tokens=20)) == 20.0  # of 30 and 50
    assert predictor.remaining(sight(tokens=50)) == 14.0  # none was longer: the prior
    assert predictor.remaining(sight(kind="arm")) == 64.0


def test_past_lengths_forgets():
    predictor = PastLengths()
    for length in (1000, *[20] * PastLengths.KEPT):
        predictor.ended(sight(tokens=length))
    assert predictor.remaining(sight()) == 20.0


def test_the_oracle_knows():
    oracle = Oracle(lambda sight: 100.0 * sight.number)
    assert [oracle.remaining(sight(2, n)) for n in (0, 150, 300)] == [200.0, 50.0, 0.0]


def test_noise_is_a_share_of_the_rest_the_same_in_every_run():
    oracle = Oracle(lambda sight: 100.0)
    exact = Noisy(oracle, error=0.0)
    assert exact.remaining(sight(1, 40)) == 60.0
    noisy, again = Noisy(oracle, 0.5, seed=3), Noisy(oracle, 0.5, seed=3)
    factors = [noisy.remaining(sight(n)) / 100 for n in range(2000)]
    assert factors == [again.remaining(sight(n)) / 100 for n in range(2000)]
    assert factors != [Noisy(oracle, 0.5, seed=4).remaining(sight(n)) / 100 for n in range(2000)]
    logs = [math.log(factor) for factor in factors]
    assert sum(logs) / 2000 == pytest.approx(0.0, abs=0.05)
    assert math.sqrt(sum(x * x for x in logs) / 2000) == pytest.approx(0.5, abs=0.03)
    assert noisy.remaining(sight(1, 50)) != noisy.remaining(sight(1)) / 2  # drawn again


def test_noise_passes_ends_on():
    past = PastLengths()
    Noisy(past, 0.0).ended(sight(tokens=12))
    assert past.remaining(sight()) == 12.0


@pytest.mark.parametrize("error", [-0.1, math.nan, math.inf, 11.0])
def test_an_error_that_is_none_is_refused(error):
    with pytest.raises(ValueError, match=r"error is .*: must be between 0 and 10"):
        Noisy(PastLengths(), error)


@pytest.mark.parametrize("prior", [0.0, -1.0, math.nan])
def test_a_prior_that_is_none_is_refused(prior):
    with pytest.raises(ValueError, match=r"prior is .* tokens: must be finite and above 0"):
        PastLengths(prior)
