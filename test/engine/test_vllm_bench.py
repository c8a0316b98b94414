"""A bench on real vLLM: goals and robots are the simulator's, the engine and its time are real."""

import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from timely_llm.bench.config import Conditions, GridPoint, TimeScale
from timely_llm.bench.real import RealBench
from timely_llm.cli.app import app
from timely_llm.paths import share
from timely_llm.simulation import trace_file
from timely_llm.simulation.workloads import published as workloads

pytestmark = pytest.mark.timeout(400)  # four engines start one after the other

GOALS = 8


@pytest.fixture(scope="module")
def few(tmp_path_factory):
    """The first goals of WID2, in seconds instead of half a minute."""
    trace = workloads.make("wid2")
    path = tmp_path_factory.mktemp("traces") / "few.jsonl"
    trace_file.write(replace(trace, arrivals=trace.arrivals[:GOALS]), path)
    return str(path)


@pytest.fixture(scope="module")
def real():
    model = str(share("models", "tiny_planner"))
    with RealBench(model, lambda: None, TimeScale(0.2)) as bench:
        yield bench


@pytest.mark.parametrize("policy", ["timely", "edf", "vllm", "vllm_priority"])
def test_every_goal_is_served_and_counted(real, few, policy):
    point = GridPoint("vllm tiny_planner", few, 1.0, policy, 4, 0)
    found = real.measure(point, Conditions())
    row = found.row
    assert (row["n"], row["dropped"], row["refused"]) == (GOALS, 0, 0)
    assert 0 < row["response_s"]["p50"] <= row["waiting_s"]["p50"]
    assert found.maximum == pytest.approx(1.625)
    engine = real.engine._engine
    assert engine.step(()).kv_blocks_used == 0 and not engine.pending  # nothing is left in it


def test_steps_and_the_planner_s_share_are_measured(real, few):
    real.measure(GridPoint("vllm tiny_planner", few, 1.0, "timely", 4, 0), Conditions())
    assert 1e-4 < real.engine.step_time() < 1.0
    assert 50 < real.engine.context < 1000
    assert real.scales[-1] == 0.2
    assert 0 < real.share.step < real.share.goal < 10


def test_the_command_runs_policies_side_by_side(few, tmp_path):
    file = tmp_path / "out.json"
    options = ("--engine", "vllm", "--policies", "vllm,timely", "--time-scale", "auto")
    arguments = ["bench", "--workload", few, *options, "--json", str(file)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    report = json.loads(file.read_text())
    assert [row["policy"] for row in report["results"]] == ["vllm", "timely"]
    assert {row["engine"] for row in report["results"]} == {"vllm tiny_planner"}
    assert 0 < report["settings"]["time_scale"]["vllm tiny_planner"] < 10
    assert "1 s of the workload lasts" in result.output
