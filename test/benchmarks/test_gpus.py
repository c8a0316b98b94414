"""Which GPU holds which model: the table in the documents is the one that is computed."""

from pathlib import Path

import pytest

from benchmarks.gpus import MEASURED, cell, share, table
from timely_llm.estimation.presets import PRESETS

ROOT = Path(__file__).parents[2]


def test_the_page_has_the_table_as_computed():
    page = (ROOT / "docs/operations.md").read_text()
    assert table() in page
    assert f"{share():.0%}" in page


@pytest.mark.parametrize("name", MEASURED)
def test_the_page_names_what_the_step_times_are_from(name):
    step = PRESETS[name].latency.decode[0]
    assert f"`{name}`: {step * 1e3:.1f} ms" in (ROOT / "docs/operations.md").read_text()


def test_the_rule_agrees_with_the_published_engine():
    assert cell("RTX 4090", "Llama3-8B").endswith(", 21.6 ms")  # TimelyLLM has 21.8


def test_weights_that_leave_no_room_for_plans_do_not_fit():
    assert cell("RTX 4060", "Llama3-8B") == "no"
    assert cell("RTX 4060 Ti", "Llama3-8B") == "no"  # 15.0 GiB of its 16
