"""``timely-llm profile`` on real vLLM, with a small grid: the profile that it writes is read."""

import pytest
from typer.testing import CliRunner

from timely_llm.bench import profile_file as profile
from timely_llm.bench.real import measure_loop
from timely_llm.cli.app import app
from timely_llm.estimation.step_time import StepLatency
from timely_llm.paths import share


@pytest.fixture(scope="module")
def written(model, tmp_path_factory):
    out = tmp_path_factory.mktemp("profile") / "mine.yaml"
    grid = ["--batches", "1,2,3", "--contexts", "64,256", "--prefills", "48,200", "--steps", "16"]
    arguments = ["--model", model, "--out", str(out), "--max-batch", "4", *grid]
    result = CliRunner().invoke(app, ["profile", *arguments])
    assert result.exit_code == 0, result.output
    return out, result.output


def test_the_profile_is_an_engine_of_this_model(written, model):
    out, _ = written
    engine = profile.load(out, model)
    assert 1e-4 < engine.latency(1, 0, 64) < 1.0
    assert engine.latency(1, 0, 64) <= engine.latency(3, 0, 192)
    assert engine.latency(0, 200, 0) > engine.latency(0, 48, 0) > 0
    assert engine.block_size == 32
    assert engine.prefill_chunk >= 256


def test_another_model_is_refused(written, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "config.json").write_text("{}")
    with pytest.raises(profile.ProfileMismatch, match="not of 'other'"):
        profile.load(written[0], str(other))


def test_what_is_printed(written):
    _, output = written
    for words in (
        "MAPE, held-out medians",
        "TimeBill, on a GPU: 1.22%",
        "TimeBill, on a GPU: 1.69%",
        "noise floor",
        "only 16 steps of each cell (100 are wanted)",
        "224 steps in 14 cells",
        "what the planner's loop adds was not measured: request 'fixed': prompt of",
    ):
        assert words in output


def test_what_the_planner_s_loop_takes():
    latency = StepLatency((0.010, 0.012), 0.001, 1e-6, 1e-5)
    loop = measure_loop(str(share("models", "tiny_planner")), {}, 4, latency)
    assert 0.010 < loop.decode_step < 0.011
    assert 0.8 < loop.mean_over_median < 2.0
    assert 0.0 < loop.step < loop.goal < 0.1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--batches", "1,9"), "batch 9: must be 1 to 4"),
        (("--model", "/nowhere/at/all"), "there is no model at '/nowhere/at/all'"),
        (("--engine-args", '{"max_model_length": 3}'), "did you mean 'max_model_len'"),
    ],
)
def test_what_the_engine_refuses_is_said_in_a_line(model, tmp_path, arguments, words):
    given = ["--model", model, "--max-batch", "4", "--out", str(tmp_path / "p.yaml"), *arguments]
    result = CliRunner().invoke(app, ["profile", *given])
    assert result.exit_code == 1
    assert words in result.output
    assert not (tmp_path / "p.yaml").exists()
