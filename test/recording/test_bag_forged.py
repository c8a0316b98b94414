"""Bags of a day with forged messages: ``support/forged_bags.py``, which makes many more by hand."""

from __future__ import annotations

from pathlib import Path

from forged_bags import faults

BAGS = 4


def test_no_forged_message_ends_in_a_traceback(tmp_path: Path) -> None:
    assert [wrong for _, wrong in faults(tmp_path, BAGS, "forged") if wrong] == []
