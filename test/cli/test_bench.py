"""``timely-llm bench``: what it refuses before anything runs, what it writes, and what is left of
it when it is interrupted."""

import json
import os
import signal
from dataclasses import replace

import pytest
from profiles import write as write_profile
from typer.testing import CliRunner

from timely_llm.bench import runner as bench_runs
from timely_llm.bench.config import Conditions
from timely_llm.bench.optimum import problems
from timely_llm.cli.app import app
from timely_llm.simulation import trace_file
from timely_llm.simulation.workloads import published as workloads

KEYS = (
    *("engine", "workload", "policy", "load", "seed", "n", "utility_mean"),
    *("utility_clipped_mean", "utility_urgent_mean", "utility_normal_mean", "met_urgent"),
    *("met_normal", "response_s", "waiting_s", "dropped", "refused", "slo_attainment", "bound"),
)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """The first goals of WID2 as a trace file."""
    trace = workloads.make("wid2")
    path = tmp_path_factory.mktemp("traces") / "small.jsonl"
    trace_file.write(replace(trace, name="small", arrivals=trace.arrivals[:20]), path)
    return str(path)


def bench(*arguments):
    return CliRunner().invoke(app, ["bench", *map(str, arguments)])


def words_of(result):
    """What the command printed, on one line and without boxes."""
    return " ".join(result.output.replace("│", " ").split())


def test_a_tiny_grid_is_run_printed_written_and_drawn(small, tmp_path):
    file, plots = tmp_path / "out.json", tmp_path / "plots"
    options = ("--policies", "edf,vllm", "--load", "1,6", "--seeds", "2", "--jobs", "2")
    result = bench("--workload", small, *options, "--json", file, "--plots", plots)
    assert result.exit_code == 0, result.output
    report = json.loads(file.read_text())
    rows = report["results"]
    assert "partial" not in report
    assert [(r["policy"], r["load"], r["seed"]) for r in rows] == [
        (policy, load, seed) for load in (1.0, 6.0) for policy in ("edf", "vllm") for seed in (0, 1)
    ]
    for row in rows:
        assert tuple(row) == (*KEYS, "max_batch")
        assert (row["n"], row["workload"], row["max_batch"]) == (20, small, 8)
        assert set(row["response_s"]) == set(row["waiting_s"]) == {"mean", "p50", "p99"}
        assert row["utility_mean"] <= row["utility_clipped_mean"] <= 2.0
    assert report["settings"]["utility_maximum"] == {small: pytest.approx(1.4)}
    assert "at load 6 on rtx4090-llama3-8b: 2 seeds, 20 goals" in result.output
    assert sorted(path.name for path in plots.iterdir()) == [
        *("burst.html", "response.html", "utility.html", "waiting.html")
    ]
    for path in plots.iterdir():
        text = path.read_text()
        assert "<script src" not in text and "plotly.js v" in text  # everything is inside


def test_the_same_bench_gives_the_same_bytes(small, tmp_path):
    texts = []
    for number in range(2):
        file, plots = tmp_path / f"{number}.json", tmp_path / f"{number}"
        bench("--workload", small, "--policies", "timely", "--json", file, "--plots", plots)
        texts.append([file.read_text(), *(p.read_text() for p in sorted(plots.iterdir()))])
    assert texts[0] == texts[1]


def test_the_best_batch_size_is_kept_and_the_others_are_not(small, tmp_path):
    file = tmp_path / "out.json"
    bench("--workload", small, "--policies", "edf", "--max-batch", "1,2,8", "--json", file)
    by_size = {
        row["max_batch"]: row["utility_mean"] for row in json.loads(file.read_text())["results"]
    }
    bench("--workload", small, "--policies", "edf", "--max-batch", "best:1,2,8", "--json", file)
    (row,) = json.loads(file.read_text())["results"]
    assert set(by_size) == {1, 2, 8}
    assert row["max_batch"] == max(by_size, key=by_size.get)
    assert row["utility_mean"] == max(by_size.values())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--policies", "timly"), "did you mean 'timely'"),
        (("--preset", "rtx4090-lama3-8b"), "did you mean 'rtx4090-llama3-8b'"),
        (("--workload", "wid4"), "did you mean 'wid"),
        (("--workload", "wid2:robot=4"), "did you mean 'robots'"),
        (("--workload", "wid2:robots"), "'robots': must be NAME=VALUE"),
        (("--workload", "wid2:robots=some"), "robots is some: must be a whole number"),
        (("--workload", "bursts:count=2.5"), "count is 2.5: must be a whole number"),
        (("--workload", "semantic:at_once=0"), "at_once is 0: must be at least 1"),
        (("--workload", "bursts:arm=perhaps"), "arm is perhaps: must be true or false"),
        (("--workload", "elis:model=opt"), "model 'opt' is unknown"),
        (("--network", "inf"), "inf must be 0 to 1000 s"),
        (("--plan-overhead", "nan"), "--plan-overhead"),
        (("--decision-overhead", "inf"), "inf must be 0 to 1000 s"),
        (("--time-scale", "1e-320"), "1e-320 must be 1e-06 to 1000"),
        (("--load", "1e-308"), "1e-308 must be 1e-06 to 1000"),
        (("--workload", "wid1:time=inf"), "time is inf s: must be finite and above 0"),
        (("--workload", "wid1:time=1e9"), "is about 2.5e+08 arrivals: at most 100000"),
        (("--workload", "slice:count=1000000000"), "count is 1000000000: must be at most 100000"),
        (("--workload", "bursts:gap=1e308"), "arrivals at inf s: at most 1e+10 s"),
        (("--workload", "bursts:gap=1e5", "--load", "1,1e-5"), "arrivals at 4.9e+11 s"),
        (("--workload", "wid1:rate=fast"), "rate is fast: must be a number"),
        (("--workload", "nowhere.jsonl"), "nowhere.jsonl"),
        (("--load", "-1"), "-1 must be 1e-06 to 1000"),
        (("--seeds", "0"), "must be 1 to 1000"),
        (("--max-batch", "none"), "'none' is not a whole number"),
        (("--time-scale", "fast"), "'fast' is not a number"),
        (("--network", "-1"), "--network"),
        (("--json", "no/such/folder/out.json"), "cannot write"),
        (("--engine", "gpu"), "--engine"),
        (("--engine", "vllm", "--preset", "a100-qwen1.5-4b"), "real vLLM takes --model"),
        (("--engine", "vllm", "--bound"), "bounds need step times"),
        (("--engine", "vllm", "--plan-overhead", "0.01"), "on real vLLM it is measured"),
        (("--engine", "vllm", "--decision-overhead", "0.01"), "on real vLLM it is measured"),
        (("--engine", "vllm", "--policies", "isrtf:oracle"), "knows the trace's answers"),
        (("--engine", "vllm", "--workload", "elis"), "writes plans for robots alone"),
        (("--policies", ","), "is empty"),
    ],
)
def test_bad_input_ends_before_anything_runs(arguments, words, monkeypatch):
    monkeypatch.setattr(bench_runs, "run_bench", lambda *_: pytest.fail("it ran"))
    result = bench(*arguments)
    assert result.exit_code == 2
    assert words in words_of(result)


def misspell(entry):
    if "tokens" in entry:
        entry["tokns"] = entry.pop("tokens")


def before_the_beginning(entry):
    if "at_s" in entry:
        entry["at_s"] = -1.0


def break_off(entry):
    if "tokens" in entry:
        del entry["tokens"][-1]


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (misspell, "did you mean 'tokens'"),
        (before_the_beginning, "at_s"),
        (break_off, "tokens"),
    ],
)
def test_a_trace_that_cannot_be_replayed_is_refused_by_line(small, tmp_path, edit, words):
    path = tmp_path / "bad.jsonl"
    with open(small) as file, path.open("w") as changed:
        for line in file:
            entry = json.loads(line)
            edit(entry)
            changed.write(json.dumps(entry) + "\n")
    result = bench("--workload", path)
    assert result.exit_code == 2
    output = words_of(result)
    assert words in output and "bad.jsonl:" in output.replace(" ", "")


def test_a_trace_whose_times_a_float_cannot_tell_apart_is_refused(small, tmp_path):
    path = tmp_path / "late.jsonl"
    with open(small) as file, path.open("w") as changed:
        for line in file:
            entry = json.loads(line)
            if "at_s" in entry:
                entry["at_s"] += 1e300
            changed.write(json.dumps(entry) + "\n")
    result = bench("--workload", path)
    assert result.exit_code == 2
    assert "arrivals at 1e+300 s: at most 1e+10 s" in words_of(result)


def test_an_empty_trace_is_refused(small, tmp_path):
    path = tmp_path / "empty.jsonl"
    with open(small) as file:
        path.write_text("".join(line for line in file if '"arrival"' not in line[:40]))
    result = bench("--workload", path)
    assert result.exit_code == 2 and "empty" in result.output


def test_a_profile_is_an_engine_and_one_of_another_model_is_refused(small, tmp_path):
    path = write_profile(tmp_path)
    options = ("--workload", small, "--policies", "edf", "--preset", path, "--time-scale", "auto")
    file = tmp_path / "out.json"
    result = bench(*options, "--model", tmp_path / "planner", "--json", file)
    assert result.exit_code == 0, result.output
    report = json.loads(file.read_text())
    assert report["results"][0]["engine"] == str(path)
    assert report["settings"]["time_scale"] == {str(path): pytest.approx(0.0033 / 0.0218)}
    assert 0.1 < report["results"][0]["response_s"]["mean"] < 1.0  # in s of the workload
    result = bench(*options, "--model", "another")
    assert result.exit_code == 2
    assert "not of 'another'" in words_of(result)
    result = bench("--model", "another")
    assert result.exit_code == 2 and "is no profile of a model" in words_of(result)


def test_policies_are_held_against_the_bound_and_the_exact_optimum(small, tmp_path):
    """Of two bursts far apart both are small, so that the optimum is exact: each goal's best."""
    trace = workloads.make("wid2")
    late = [replace(arrival, at=arrival.at + 100) for arrival in trace.arrivals[13:16]]
    path = tmp_path / "bursts.jsonl"
    trace_file.write(replace(trace, arrivals=(*trace.arrivals[:2], *late)), path)
    file = tmp_path / "out.json"
    both = f"{small},{path}"
    options = ("--policies", "edf,vllm", "--max-batch", "4,vllm=8", "--bound", "--json", file)
    assert bench("--workload", both, *options).exit_code == 0
    rows = json.loads(file.read_text())["results"]
    assert [row["workload"] for row in rows] == [small, small, str(path), str(path)]
    for row in rows:
        assert row["utility_mean"] <= row["bound"] + 1e-6
    assert rows[0]["bound"] == rows[1]["bound"] < 1.4
    asked = problems("rtx4090-llama3-8b", str(path), 1.0, 0, 8)
    assert [problem.burst for problem in asked] == [0, 1]
    alone = sum(p.most(Conditions()) for p in asked) / 5
    assert rows[2]["bound"] == pytest.approx(alone, abs=1e-6)


def test_the_paper_s_load_is_found_said_and_used(tmp_path):
    """The preset is fitted so that vllm has the paper's 0.74 on WID2 at load 1."""
    file = tmp_path / "out.json"
    options = ("--load", "paper", "--policies", "vllm", "--max-batch", "12", "--json", file)
    result = bench(*options)
    assert result.exit_code == 0
    report = json.loads(file.read_text())
    (found,) = report["settings"]["paper_load"]
    assert found["load"] == pytest.approx(1.0, rel=0.05)
    assert report["results"][0]["load"] == found["load"]
    assert report["results"][0]["utility_mean"] == pytest.approx(0.74, abs=0.003)
    assert f"at load {found['load']:g}" in result.output


def test_a_load_that_does_not_exist_is_said(tmp_path, small):
    """Goals that all come at once do so at every load."""
    trace = trace_file.read(small)
    path = tmp_path / "at_once.jsonl"
    at_once = tuple(replace(arrival, at=0.0) for arrival in trace.arrivals)
    trace_file.write(replace(trace, arrivals=at_once), path)
    result = bench("--workload", path, "--load", "paper", "--policies", "vllm")
    assert result.exit_code == 1
    assert "--load paper: vllm on" in result.output and "utility" in result.output


# Interrupts.


def test_an_interrupted_bench_writes_what_there_is(small, tmp_path, monkeypatch):
    """Ctrl-C after the first of four runs."""
    done = []

    def jobs(work, items, processes, interrupt, finished):
        finished(0, work(items[0]))
        done.append(items[0])
        os.kill(os.getpid(), signal.SIGINT)
        interrupt.check()

    monkeypatch.setattr(bench_runs, "run_jobs", jobs)
    file = tmp_path / "out.json"
    result = bench("--workload", small, "--policies", "edf,vllm", "--seeds", "2", "--json", file)
    assert result.exit_code == 130
    report = json.loads(file.read_text())
    assert report["partial"] is True
    assert [(r["policy"], r["seed"]) for r in report["results"]] == [("edf", 0)]
    assert "interrupted: 1 of 4 runs" in result.output


def test_a_failure_in_the_middle_keeps_what_there_is(small, tmp_path, monkeypatch):
    def jobs(work, items, processes, interrupt, finished):
        finished(0, work(items[0]))
        raise MemoryError("out of memory")

    monkeypatch.setattr(bench_runs, "run_jobs", jobs)
    file = tmp_path / "out.json"
    result = bench("--workload", small, "--policies", "edf,vllm", "--json", file)
    assert isinstance(result.exception, MemoryError)
    report = json.loads(file.read_text())
    assert report["partial"] is True and len(report["results"]) == 1
