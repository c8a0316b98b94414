"""docs/results.md: its commands are ones that ``timely-llm bench`` accepts, and the script that
fills it puts outputs where they belong."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from scripts import results
from timely_llm.cli import bench as bench_command
from timely_llm.cli.app import app

ROOT = Path(__file__).parents[2]

TEXT = """# A
words
```console
$ timely-llm bench --load 1 \\
    --policies 'edf'
old
old
```
## B
```console
$ timely-llm bench
```
```console
$ other
```
"""


def test_blocks_are_found_with_their_headings():
    found = list(results.blocks(TEXT))
    assert [(b.heading, b.arguments) for b in found] == [
        ("A", ("bench", "--load", "1", "--policies", "edf")),
        ("B", ("bench",)),
    ]
    assert TEXT[found[0].start : found[0].end] == "old\nold\n"


def test_an_output_takes_the_place_of_the_old_one():
    first, second = results.blocks(TEXT)
    assert results.with_output(TEXT, first, "\nnew  \n\n") == TEXT.replace("old\nold\n", "new\n")
    changed = results.with_output(TEXT, second, "a\n\nb")
    assert changed == TEXT.replace("bench\n```", "bench\na\n\nb\n```")
    assert len(list(results.blocks(changed))) == 2


COMMANDS = list(results.blocks((ROOT / "docs" / "results.md").read_text(encoding="utf-8")))


@pytest.mark.parametrize("block", COMMANDS, ids=lambda block: " ".join(block.arguments)[:60])
def test_every_command_of_the_document_is_accepted(block, monkeypatch, tmp_path):
    arguments = [a for a in block.arguments if not a.startswith("build/")]
    if len(arguments) < len(block.arguments):
        pytest.skip("reads or writes files that another command makes")
    ran = []
    monkeypatch.setattr(bench_command, "_run", lambda plan, *_: ran.append(plan) or 0)
    if "--seeds" in arguments:  # as well with one seed, and sooner
        arguments[arguments.index("--seeds") + 1] = "1"
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert ran[0].grid.policies
