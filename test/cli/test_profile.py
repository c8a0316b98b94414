"""``timely-llm profile``: what is refused before an engine is started."""

import pytest
import xgrammar
from typer.testing import CliRunner

from timely_llm.cli.app import app
from timely_llm.cli.profile import endless
from timely_llm.language.grammar import plan_grammar
from timely_llm.language.loader import load_skill_set
from timely_llm.paths import share


def run(*arguments):
    return CliRunner().invoke(app, ["profile", *map(str, arguments)], terminal_width=500)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--batches", "1,x"), ("--batches", "'x'", "must be a whole number above 0")),
        (("--prefills", "0"), ("--prefills", "'0'")),
        (("--contexts", "64,-3"), ("--contexts", "'-3'")),
        (("--engine-args", "{"), ("--engine-args", "is not JSON")),
        (("--engine-args", "[1]"), ("--engine-args", "is not a JSON object")),
        (("--kind", "telo"), ("--kind", "'telo'", "did you mean 'tello'?")),
        (("--steps", "3"), ("--steps", "equal to 8")),
        (("--budget", "0"), ("--budget", "equal to 1")),
    ],
)
def test_bad_options_are_named(tmp_path, arguments, words):
    result = run("--out", tmp_path / "p.yaml", *arguments)
    assert result.exit_code == 2
    output = " ".join(result.output.replace("│", " ").split())
    for word in words:
        assert word in output


def test_a_file_that_cannot_be_written_is_refused_first(tmp_path):
    result = run("--out", tmp_path / "nowhere" / "p.yaml")
    assert result.exit_code == 2
    assert "cannot write" in result.output
    assert run().exit_code == 2  # --out is missing


def test_an_endless_grammar_is_well_formed_and_never_at_its_end():
    plan = plan_grammar(load_skill_set(share("config", "skills", "tello.yaml")))
    compiler = xgrammar.GrammarCompiler(
        xgrammar.TokenizerInfo([chr(i) for i in range(128)], stop_token_ids=[0])
    )
    for grammar, ends in ((plan, True), (endless(plan), False)):
        matcher = xgrammar.GrammarMatcher(
            compiler.compile_grammar(grammar), terminate_without_stop_token=True
        )
        assert matcher.accept_string("l('a');")
        assert matcher.is_completed() is ends
    assert matcher.accept_string("l('b');" * 20)
