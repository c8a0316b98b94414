"""``timely-llm eval``: what it reads, prints, writes; a scripted engine stands in for a model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from timely_llm.cli import eval_run
from timely_llm.cli.app import app
from timely_llm.engine.config import EngineConfig
from timely_llm.engine.factory import build
from timely_llm.estimation.presets import PACES
from timely_llm.evaluation.instructions import bundled


@pytest.fixture
def scripted(monkeypatch):
    """Plans by the words of their instructions; the pieces of each."""
    plans: dict[str, str] = {}

    def script(request):
        texts = [plan for words, plan in plans.items() if words in (request.user or "")]
        return list(texts[-1]) if texts else ["->", "False"]

    def scripted_engine(config: EngineConfig):
        return build(EngineConfig("scripted", 8, script=script, pace=next(iter(PACES))))

    monkeypatch.setattr(eval_run, "build", scripted_engine)
    return plans


def evaluate(*arguments: str):
    return CliRunner().invoke(app, ["eval", "--plan-names", "words", *arguments])


TEMPLATE = ("--prompt-template", str(Path(__file__).parents[2] / "config/prompts/default.jinja2"))


def test_the_packages_instructions_are_judged(scripted, tmp_path):
    scripted |= {each.instruction: each.plan for each in bundled("open")}
    file = tmp_path / "judged.json"
    answer = evaluate(*TEMPLATE, "--half", "open", "--json", str(file))
    assert answer.exit_code == 0, answer.output
    written = json.loads(file.read_text())
    assert {row["verdict"] for row in written["plans"]} == {"done"}
    assert written["tables"][0]["lines"][0][:3] == ["open", "172", "100.0% (98% to 100%)"]
    assert [table["title"] for table in written["tables"]] == [
        "Plans by what happened",
        "By family",
        "By robot",
    ]
    assert "Plans by what happened" in answer.output


def test_a_part_of_both_halves(scripted, tmp_path):
    file = tmp_path / "judged.json"
    assert evaluate(*TEMPLATE, "--most", "15", "--json", str(file)).exit_code == 0
    plans = json.loads(file.read_text())["plans"]
    assert [row["half"] for row in plans] == ["open"] * 15 + ["held_out"] * 15


def test_a_list_of_anybodys_is_flown(scripted, tmp_path):
    asked, file = tmp_path / "asked.json", tmp_path / "flown.json"
    asked.write_text('[{"kind": "tello", "scene": "[]", "instruction": "Rise by one."}]')
    scripted["Rise by one."] = "move_up(100)"
    answer = evaluate(*TEMPLATE, "--instructions", str(asked), "--json", str(file))
    assert answer.exit_code == 0, answer.output
    (row,) = json.loads(file.read_text())
    assert (row["plan"], row["code"], row["calls"]) == ("move_up(100)", "NONE", ["move_up(100)"])
    assert "verdict" not in row and row["end"]["z"] == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--half", "opn"), "did you mean 'open'"),
        (("--plan-names", "wrds"), "did you mean 'words'"),
        (("--min-logprob", "1"), "must be auto, none or a number, -1000 to 0"),
        (("--json", "/nowhere/at/all.json"), "cannot write"),
    ],
)
def test_what_cannot_be_asked_for(arguments, words):
    answer = evaluate(*arguments)
    assert answer.exit_code == 2 and words in " ".join(answer.output.replace("│", " ").split())
