"""The grid of a bench, its options, the search for the paper's load, and what runs say together."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timely_llm.bench import config as options
from timely_llm.bench.config import BadOption
from timely_llm.bench.grid import (
    BATCHES,
    Batches,
    Cell,
    Grid,
    Measured,
    TimeScale,
    cells,
    interval,
    kept_cells,
    report_json,
    summaries,
)
from timely_llm.bench.search import NoSuchLoad, load_of

KNOWN = ("edf", "fcfs", "timely", "vllm")


def spread(mean):
    return {"mean": mean, "p50": mean, "p99": 2 * mean}


def row(cell, utility, response=0.5):
    """A row of the report with the keys that the issue names."""
    return {
        "engine": cell.engine,
        "workload": cell.workload,
        "policy": cell.policy,
        "load": cell.load,
        "seed": cell.seed,
        "n": 10,
        "utility_mean": utility,
        "utility_clipped_mean": max(0.0, utility),
        "utility_urgent_mean": utility,
        "utility_normal_mean": utility,
        "met_urgent": 0.5,
        "met_normal": 1.0,
        "response_s": spread(response),
        "waiting_s": spread(response),
        "dropped": 0,
        "refused": 0,
        "slo_attainment": 0.5,
        "bound": None,
    }


def measured(policy, utility, seed=0, batch=8, load=1.0):
    cell = Cell("e", "w", load, policy, batch, seed)
    return Measured(cell, row(cell, utility), (), 1.4)


# The grid.


def test_the_grid_is_every_combination_in_order():
    grid = Grid(("e",), ("w", "x"), (1.0, 3.0), ("edf", "vllm"), (0, 1))
    assert [(c.workload, c.load, c.policy, c.seed) for c in cells(grid)] == [
        (w, load, p, s)
        for w in "wx"
        for load in (1.0, 3.0)
        for p in ("edf", "vllm")
        for s in (0, 1)
    ]
    assert {c.max_batch for c in cells(grid)} == {8}


def test_a_policy_may_have_batch_sizes_of_its_own():
    batches = Batches((4, 8), (("vllm", (12,)),))
    grid = Grid(("e",), ("w",), (1.0,), ("edf", "vllm"), (0,), batches)
    assert [(c.policy, c.max_batch) for c in cells(grid)] == [("edf", 4), ("edf", 8), ("vllm", 12)]


def test_the_paper_s_load_is_another_one_for_each_workload():
    grid = Grid(("e",), ("w", "x"), ("paper", 2.0), ("edf",))
    found = cells(grid, {("e", "w"): 0.5, ("e", "x"): 2.0})
    assert [(c.workload, c.load) for c in found] == [("w", 0.5), ("w", 2.0), ("x", 2.0)]


# Options.


@pytest.mark.parametrize(
    ("text", "seeds"),
    [("1", (0,)), ("3", (0, 1, 2)), ("7,", (7,)), ("0,4", (0, 4)), ("5-7", (5, 6, 7))],
)
def test_seeds(text, seeds):
    assert options.seeds(text) == seeds


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
    assert options.batches(text, KNOWN) == expected


def test_loads_and_time_scales():
    assert options.loads("1, 2,paper,0.5") == (1.0, 2.0, "paper", 0.5)
    assert options.time_scale("auto") == TimeScale(1.0, auto=True)
    assert options.time_scale("auto:1.5").of(lambda: 0.0109) == 0.75
    assert options.time_scale("0.07").of(lambda: 9.0) == 0.07


@pytest.mark.parametrize(
    ("read", "option", "words"),
    [
        (
            lambda: options.names("--policies", "timly", KNOWN),
            "--policies",
            "did you mean 'timely'",
        ),
        (lambda: options.names("--policies", " , ", KNOWN), "--policies", "is empty"),
        (lambda: options.loads("-1"), "--load", "-1 must be 1e-06 to 1000"),
        (lambda: options.loads("fast"), "--load", "'fast' is not a number"),
        (lambda: options.loads("nan"), "--load", "nan must be 1e-06 to 1000"),
        (lambda: options.loads("1e9"), "--load", "1e9 must be 1e-06 to 1000"),
        (lambda: options.loads("1e-308"), "--load", "1e-308 must be 1e-06 to 1000"),
        (lambda: options.seeds("0"), "--seeds", "0 must be 1 to 1000"),
        (lambda: options.seeds("-3"), "--seeds", "must be"),
        (lambda: options.seeds("5-2"), "--seeds", "2 must be 5 to"),
        (lambda: options.seeds("x"), "--seeds", "'x' is not a whole number"),
        (lambda: options.time_scale("0"), "--time-scale", "0 must be 1e-06 to 1000"),
        (lambda: options.time_scale("1e-320"), "--time-scale", "1e-320 must be 1e-06 to 1000"),
        (lambda: options.seconds("--network", math.inf), "--network", "inf must be 0 to 1000 s"),
        (lambda: options.seconds("--network", math.nan), "--network", "nan must be 0 to 1000 s"),
        (lambda: options.seconds("--network", -1.0), "--network", "-1 must be 0 to 1000 s"),
        (lambda: options.time_scale("auto:no"), "--time-scale", "'no' is not a number"),
        (lambda: options.batches("0", KNOWN), "--max-batch", "0 must be 1 to 1024"),
        (lambda: options.batches("vlm=4", KNOWN), "--max-batch", "did you mean 'vllm'"),
        (lambda: options.batches("vllm=", KNOWN), "--max-batch", "'' is not a whole number"),
        (lambda: options.batches("beast", KNOWN), "--max-batch", "'beast' is not a whole number"),
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
        options.loads,
        options.seeds,
        options.time_scale,
        lambda text: options.batches(text, KNOWN),
        lambda text: options.names("--policies", text, KNOWN),
    ):
        try:
            read(text)
        except BadOption as error:
            assert error.option.startswith("--") and str(error)


# The paper's load.


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


# What runs say together.


def test_seeds_are_averaged_and_the_lead_is_over_the_best_other():
    runs = [
        *(measured("edf", u, seed) for seed, u in enumerate((1.0, 1.2))),
        *(measured("timely", u, seed) for seed, u in enumerate((1.14, 1.34))),
        *(measured("vllm", u, seed) for seed, u in enumerate((0.2, 0.4))),
    ]
    edf, timely, vllm = summaries(runs)
    assert edf.utility == pytest.approx(1.1)
    assert edf.row["utility_mean"] == pytest.approx(1.1)
    assert timely.lead == pytest.approx(0.1)  # 0.14 of 1.4
    assert timely.lead_error == pytest.approx(0.0, abs=1e-9)  # the same on every trace
    assert edf.lead == pytest.approx(-0.1)
    assert vllm.lead == pytest.approx(-0.94 / 1.4)


def test_an_interrupted_bench_compares_on_the_seeds_that_both_have():
    """Seed 1 is worth less to everybody; of the three policies not all were run on it."""
    runs = [measured("timely", 0.9, 0), measured("timely", 0.4, 1), measured("timely", 0.9, 2)]
    runs += [measured("vllm", 0.2, 1), measured("vllm", 0.76, 2), measured("edf", 0.9, 3)]
    timely, vllm, edf = summaries(runs)
    assert timely.seeds == (0, 1, 2) and vllm.seeds == (1, 2)
    assert timely.lead == pytest.approx(0.17 / 1.4)
    assert vllm.lead == pytest.approx(-0.17 / 1.4)
    assert timely.lead_error == pytest.approx(12.706 * 0.03 / 1.4)
    assert edf.lead is None and edf.lead_error is None


def test_the_best_batch_size_is_best_on_the_same_seeds():
    runs = [measured("edf", 0.9, 0, batch=4), measured("edf", 0.1, 1, batch=4)]
    runs += [measured("edf", 0.8, 0, batch=8)]
    (only,) = summaries(runs, best=True)
    assert only.cell.max_batch == 4


def test_only_the_best_batch_size_of_each_policy_is_kept():
    runs = [
        *(measured("edf", u, batch=b) for b, u in ((2, 0.9), (4, 1.1), (8, 1.1))),
        *(measured("vllm", u, batch=b) for b, u in ((2, 0.3), (4, 0.1), (8, 0.2))),
        measured("edf", 0.5, batch=8, load=3.0),
    ]
    found = summaries(runs, best=True)
    assert [(s.cell.policy, s.cell.load, s.cell.max_batch) for s in found] == [
        ("edf", 1.0, 4),
        ("vllm", 1.0, 2),
        ("edf", 3.0, 8),
    ]
    assert found[0].lead == pytest.approx(0.8 / 1.4)
    assert [m.cell for m in kept_cells(found, runs)] == [s.cell for s in found]
    assert len(summaries(runs)) == len(runs)


def test_one_policy_alone_leads_nobody():
    (only,) = summaries([measured("edf", 1.0)])
    assert only.lead is None and only.lead_error is None


@pytest.mark.parametrize(
    ("values", "mean", "error"),
    [((2.0,), 2.0, None), ((1.0, 3.0), 2.0, 12.706), ((1.0, 2.0, 3.0), 2.0, 4.303 / math.sqrt(3))],
)
def test_interval(values, mean, error):
    assert interval(values)[0] == mean
    assert interval(values)[1] == (None if error is None else pytest.approx(error))


def test_the_report_is_json_with_the_issue_s_keys():
    runs = [measured("edf", 1.0 / 3), measured("vllm", math.nan)]
    report = json.loads(json.dumps(report_json(runs, False, {"cut_s": 60.0}), allow_nan=False))
    assert list(report) == ["results", "settings"]
    assert list(report["results"][0]) == [*runs[0].row, "max_batch"]
    assert report["results"][0]["utility_mean"] == 0.333333
    assert report["results"][1]["utility_mean"] is None
    assert report_json(runs, True, {})["partial"] is True
