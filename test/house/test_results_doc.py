"""``docs/results``: its commands are ones that ``timely-llm bench`` accepts, the pages are those
that the data make, and a run that fails or is interrupted loses nothing."""

import json
import shlex
import subprocess

import pytest
from typer.testing import CliRunner

from scripts import results
from timely_llm.cli import bench as bench_command
from timely_llm.cli.app import app

MEASURED = {name: entry for name, entry in results.entries().items() if "rows" in entry}


def test_every_page_is_what_the_data_make_of_it():
    for path, text in results.pages().items():
        assert path.read_text("utf-8") == text, f"{path.name}: run `make results ARGS=--pages`"


def test_every_entry_says_what_measured_it_when_and_where():
    for name, entry in results.entries().items():
        assert {"title", "command", "measured", "machine"} < set(entry), name
        assert ("rows" in entry) != ("tables" in entry), name
        for table in entry.get("tables", ()):
            assert {len(cells) for cells in table["lines"]} == {len(table["columns"])}, name


@pytest.mark.parametrize("name", MEASURED)
def test_every_command_is_accepted_and_makes_the_rows_that_are_there(name, monkeypatch):
    arguments = shlex.split(MEASURED[name]["command"])[1:]
    kept = [a for a in arguments if not a.startswith("build/")]
    if len(kept) < len(arguments):
        pytest.skip("reads or writes files that another command makes")
    ran = []
    monkeypatch.setattr(bench_command, "_run", lambda config: ran.append(config) or 0)
    result = CliRunner().invoke(app, kept)
    assert result.exit_code == 0, result.output
    config, rows = ran[0], MEASURED[name]["rows"]
    assert {row["policy"] for row in rows} == set(config.policies)
    assert {row["workload"] for row in rows} == set(config.workloads)
    assert {row["seeds"] for row in rows} == {len(config.seeds)}


REPORT = {
    "results": [
        {
            **{"engine": "rtx4090-llama3-8b", "workload": "bursts:count=1", "load": 1.0},
            **{"policy": policy, "max_batch": 8, "seed": seed, "n": 4, "bound": 1.6},
            **{"utility_mean": utility, "response_s": {"mean": 0.1, "p99": 0.2}, "dropped": 0},
        }
        for policy, utilities in {"edf": (1.0, 1.2), "fcfs": (0.8, 0.8)}.items()
        for seed, utility in enumerate(utilities)
    ],
    "settings": {"time_scale": {"rtx4090-llama3-8b": 1.0}},
}


def test_seeds_are_put_together_and_policies_compared():
    edf, fcfs = results.rows_of(REPORT)
    assert (edf["policy"], edf["seeds"], edf["goals"], edf["max_batch"]) == ("edf", 2, 4, 8)
    assert edf["utility_mean"] == pytest.approx(1.1)
    assert edf["utility_error"] == pytest.approx(12.706 * 0.1, rel=1e-4)
    assert edf["of_bound"] == pytest.approx(1.1 / 1.6)
    assert edf["lead"] == pytest.approx(0.3 / edf["maximum"], abs=1e-5) == -fcfs["lead"]
    assert not {"seed", "n", "bound", "time_scale"} & set(edf)
    assert json.loads(results.as_text({"title": "a", "rows": [edf, fcfs]}))["rows"] == [edf, fcfs]


def test_a_command_that_fails_leaves_what_was_measured(monkeypatch, tmp_path):
    for path in results.DATA.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    monkeypatch.setattr(results, "DATA", tmp_path)
    before = {path.name: path.read_text("utf-8") for path in tmp_path.iterdir()}

    def fail(words, **_):
        raise subprocess.CalledProcessError(130, words)

    monkeypatch.setattr(subprocess, "run", fail)
    assert results.main(["slice_table2"]) == 130
    assert {path.name: path.read_text("utf-8") for path in tmp_path.iterdir()} == before
