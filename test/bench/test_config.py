"""The configuration of a bench: its options, and the runs that it stands for."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timely_llm.bench import config
from timely_llm.bench.config import BATCHES, BadOption, Batches, BenchConfig, TimeScale

KNOWN = ("edf", "fcfs", "timely", "vllm")


# The grid.


def test_the_grid_is_every_combination_in_order():
    bench = BenchConfig(("e",), ("w", "x"), (1.0, 3.0), ("edf", "vllm"), (0, 1))
    assert [(c.workload, c.load, c.policy, c.seed) for c in bench.points({})] == [
        (w, load, p, s)
        for w in "wx"
        for load in (1.0, 3.0)
        for p in ("edf", "vllm")
        for s in (0, 1)
    ]
    assert {c.max_batch for c in bench.points({})} == {8}


def test_a_policy_may_have_batch_sizes_of_its_own():
    batches = Batches((4, 8), (("vllm", (12,)),))
    bench = BenchConfig(("e",), ("w",), (1.0,), ("edf", "vllm"), (0,), batches)
    assert [(c.policy, c.max_batch) for c in bench.points({})] == [
        ("edf", 4),
        ("edf", 8),
        ("vllm", 12),
    ]


def test_the_paper_s_load_is_another_one_for_each_workload():
    bench = BenchConfig(("e",), ("w", "x"), ("paper", 2.0), ("edf",))
    found = bench.points({("e", "w"): 0.5, ("e", "x"): 2.0})
    assert [(c.workload, c.load) for c in found] == [("w", 0.5), ("w", 2.0), ("x", 2.0)]


# Options.


@pytest.mark.parametrize(
    ("text", "seeds"),
    [("1", (0,)), ("3", (0, 1, 2)), ("7,", (7,)), ("0,4", (0, 4)), ("5-7", (5, 6, 7))],
)
def test_seeds(text, seeds):
    assert config.parse_seeds(text) == seeds


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("8", Batches((8,))),
        ("2,4,4", Batches((2, 4))),
        ("best", Batches(BATCHES, (), True)),
        ("best:4,6", Batches((4, 6), (), True)),
        ("vllm=12", Batches((8,), (("vllm", (12,)),))),
        ("6,vllm=12,vllm=8,edf=1", Batches((6,), (("vllm", (12, 8)), ("edf", (1,))))),
    ],
)
def test_batch_sizes(text, expected):
    assert config.parse_batches(text, KNOWN) == expected


def test_loads_and_time_scales():
    assert config.parse_loads("1, 2,paper,0.5") == (1.0, 2.0, "paper", 0.5)
    assert config.parse_time_scale("auto") == TimeScale(1.0, auto=True)
    assert config.parse_time_scale("auto:1.5").of(lambda: 0.0109) == 0.75
    assert config.parse_time_scale("0.07").of(lambda: 9.0) == 0.07


@pytest.mark.parametrize(
    ("read", "option", "words"),
    [
        (
            lambda: config.parse_names("--policies", "timly", KNOWN),
            "--policies",
            "did you mean 'timely'",
        ),
        (lambda: config.parse_names("--policies", " , ", KNOWN), "--policies", "is empty"),
        (lambda: config.parse_loads("-1"), "--load", "-1 must be 1e-06 to 1000"),
        (lambda: config.parse_loads("fast"), "--load", "'fast' is not a number"),
        (lambda: config.parse_loads("nan"), "--load", "nan must be 1e-06 to 1000"),
        (lambda: config.parse_loads("1e9"), "--load", "1e9 must be 1e-06 to 1000"),
        (lambda: config.parse_loads("1e-308"), "--load", "1e-308 must be 1e-06 to 1000"),
        (lambda: config.parse_seeds("0"), "--seeds", "0 must be 1 to 1000"),
        (lambda: config.parse_seeds("-3"), "--seeds", "must be"),
        (lambda: config.parse_seeds("5-2"), "--seeds", "2 must be 5 to"),
        (lambda: config.parse_seeds("x"), "--seeds", "'x' is not a whole number"),
        (lambda: config.parse_time_scale("0"), "--time-scale", "0 must be 1e-06 to 1000"),
        (lambda: config.parse_time_scale("1e-320"), "--time-scale", "1e-320 must be 1e-06 to 1000"),
        (
            lambda: config.check_seconds("--network", math.inf),
            "--network",
            "inf must be 0 to 1000 s",
        ),
        (
            lambda: config.check_seconds("--network", math.nan),
            "--network",
            "nan must be 0 to 1000 s",
        ),
        (lambda: config.check_seconds("--network", -1.0), "--network", "-1 must be 0 to 1000 s"),
        (lambda: config.parse_time_scale("auto:no"), "--time-scale", "'no' is not a number"),
        (lambda: config.parse_batches("0", KNOWN), "--max-batch", "0 must be 1 to 1024"),
        (lambda: config.parse_batches("vlm=4", KNOWN), "--max-batch", "did you mean 'vllm'"),
        (lambda: config.parse_batches("vllm=", KNOWN), "--max-batch", "'' is not a whole number"),
        (
            lambda: config.parse_batches("beast", KNOWN),
            "--max-batch",
            "'beast' is not a whole number",
        ),
    ],
)
def test_bad_options_name_the_option_and_the_value(read, option, words):
    with pytest.raises(BadOption, match=".") as caught:
        read()
    assert caught.value.option == option
    assert words in str(caught.value)


@given(st.text(max_size=12))
def test_any_text_is_an_option_or_a_bad_one(text):
    for read in (
        config.parse_loads,
        config.parse_seeds,
        config.parse_time_scale,
        lambda text: config.parse_batches(text, KNOWN),
        lambda text: config.parse_names("--policies", text, KNOWN),
    ):
        try:
            read(text)
        except BadOption as error:
            assert error.option.startswith("--") and str(error)
