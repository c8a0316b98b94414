"""The offline fit: known machines are found again, held-out steps stay out, figures by hand."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timely_llm.bench.latency_fit import (
    Point,
    Sample,
    StepShape,
    fit,
    halves,
    judge,
    mape,
    points,
    replay,
)
from timely_llm.estimation.step_time import StepLatency

TRUTH = StepLatency(
    decode=(0.003, 0.0034, 0.0036, 0.004, 0.0048, 0.0056, 0.0059, 0.0062),
    per_sequence=0.0004,
    per_kv_token=5e-8,
    prefill_alone=0.0025,
    prefill_beside=0.0006,
    per_prefill_token=4e-5,
    per_prefill_square=3e-9,
)
SIZES = (1, 2, 4, 6, 8)
SHAPES = [
    *[StepShape(batch, 0, context) for batch in SIZES for context in (64, 512, 2048)],
    *[StepShape(batch, prompt, 512) for batch in (0, 1, 4) for prompt in (16, 128, 1024)],
]


def measured(seed: int = 0, noise: float = 0.0, visits: int = 20, burst: int = 4) -> list[Sample]:
    rng = random.Random(seed)
    samples = []
    for visit in range(visits):
        for shape in rng.sample(SHAPES, len(SHAPES)):
            for _ in range(burst):
                kv = shape.batch * (shape.context + rng.randrange(50))
                time = TRUTH(shape.batch, shape.prefill, kv) * rng.gauss(1.0, noise)
                samples.append(Sample(shape, visit, shape.batch, shape.prefill, kv, time))
    return samples


# The form.


def test_a_step_is_decode_and_prefill_with_a_constant_of_its_own():
    assert TRUTH(1) == 0.003
    assert TRUTH(3, 0, 1000) == pytest.approx(0.0036 + 5e-5)
    assert TRUTH(10) == pytest.approx(0.0062 + 2 * 0.0004)  # beyond the table
    assert TRUTH(0, 100) == pytest.approx(0.0025 + 0.004 + 3e-5)
    assert TRUTH(2, 100) == pytest.approx(0.0034 + 0.0006 + 0.004 + 3e-5)
    assert TRUTH(0) == 0.0


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"decode": ()}, "decode has no times"),
        ({"decode": (0.1, -1.0)}, r"decode\[1\] is -1.0 s"),
        ({"per_kv_token": float("nan")}, "per_kv_token is nan s"),
        ({"prefill_alone": float("inf")}, "prefill_alone is inf s"),
    ],
)
def test_no_time_is_negative_or_infinite(fields, words):
    given = {name: getattr(TRUTH, name) for name in TRUTH.__slots__}
    with pytest.raises(ValueError, match=words):
        StepLatency(**given | fields)


# The fit.


def test_a_machine_without_noise_is_found_again():
    found = fit(list(points(measured()).values()))
    for shape in SHAPES:
        query = (shape.batch, shape.prefill, shape.batch * shape.context)
        assert found(*query) == pytest.approx(TRUTH(*query), rel=1e-4)
    assert found.per_prefill_square == pytest.approx(3e-9, rel=0.02)
    assert len(found.decode) == 8
    assert found.decode[4] == pytest.approx((TRUTH(4) + TRUTH(6)) / 2, rel=1e-3)  # 5: a line
    assert found.per_sequence == pytest.approx((TRUTH(8) - TRUTH(1)) / 7, rel=1e-3)


def test_nothing_that_decodes_alone_is_an_error():
    with pytest.raises(ValueError, match="decoding sequences alone"):
        fit([Point(StepShape(0, 16, 0), 0, 16.0, 0.0, 0.01)])


POINTS = st.builds(
    lambda batch, prefill, context, seconds: Point(
        StepShape(batch, prefill, context), batch, float(prefill), float(batch * context), seconds
    ),
    st.integers(1, 32),
    st.sampled_from([0, 0, 16, 1000]),
    st.integers(1, 4000),
    st.floats(1e-4, 10.0),
)


@given(st.lists(POINTS, min_size=1, max_size=20))
def test_whatever_was_measured_no_time_is_negative_nor_falls(some):
    some.append(Point(StepShape(1, 0, 1), 1, 0.0, 1.0, 0.01))
    found = fit(some)
    times = [found(batch, 0, 1000) for batch in range(1, 40)]
    assert times == sorted(times)
    assert found(0, 10) <= found(0, 100)
    assert 0.0 <= found(1, 0, 0) <= found(1, 10, 100)


# The judgement.


def test_the_steps_of_every_second_visit_are_held_out():
    training, held_out = halves(measured(visits=4))
    assert {sample.visit for sample in training} == {0, 2}
    assert {sample.visit for sample in held_out} == {1, 3}


def test_a_cell_s_point_is_its_median_step():
    shape = StepShape(2, 0, 100)
    samples = [
        Sample(shape, 0, 2, 0, kv, time) for kv, time in [(200, 3.0), (202, 9.0), (204, 1.0)]
    ]
    assert points(samples) == {shape: Point(shape, 2, 0.0, 202.0, 3.0)}


def test_mape_by_hand():
    assert mape([(1.1, 1.0), (1.6, 2.0)]) == pytest.approx(0.15)
    assert mape([]) == 0.0


def test_cells_are_predicted_by_fits_that_have_not_seen_them():
    """One shape takes three times as long: its error shows only where it is not fitted to."""
    odd = StepShape(4, 0, 512)
    samples = [s._replace(seconds=s.seconds * 3.0) if s.shape == odd else s for s in measured()]
    report = judge(samples)
    assert {shape.shape for shape in report.shapes} == set(SHAPES)
    (shape,) = [shape for shape in report.shapes if shape.shape == odd]
    assert shape.predicted == pytest.approx(TRUTH(4, 0, 2150), rel=0.01)
    assert shape.error > 0.5
    assert shape.held_out == pytest.approx(3.0 * TRUTH(4, 0, 4 * 537), rel=0.02)
    assert report.unseen["decode"] > report.unseen["prefill"]


def test_a_noisy_machine_is_predicted_within_its_noise():
    report = judge(measured(1, noise=0.06))
    assert set(report.unseen) == {"all", "decode", "prefill", "mixed"}
    assert 0.0 < report.unseen["all"] < 0.03
    assert 0.0 < report.seen < report.unseen["all"] + 0.005
    assert 0.0 < report.floor < 0.03
    assert report.step == pytest.approx(report.step_floor, abs=0.005)
    assert 0.04 < report.step_floor < 0.06  # the mean of |N(0, 0.06)| is 0.048
    assert report.online == pytest.approx(report.online_floor, abs=0.01)
    assert all(shape.steps == 80 for shape in report.shapes)


def test_steps_without_noise_have_no_floor():
    report = judge([s._replace(kv=s.shape.batch * 100, seconds=0.005) for s in measured()])
    assert report.floor == report.step_floor == 0.0


def test_a_cell_visited_once_is_an_error():
    with pytest.raises(ValueError, match="24 cells were visited once"):
        judge(measured(visits=1))


def test_a_replay_predicts_each_step_before_it_is_made():
    samples = [s._replace(seconds=TRUTH(*s[2:5])) for s in measured(2)]
    predicted = replay(samples)
    assert predicted[0] == StepLatency((0.02,), per_prefill_token=1e-4)(*samples[0][2:5])
    assert predicted[-100:] == pytest.approx([s.seconds for s in samples[-100:]], rel=0.03)
