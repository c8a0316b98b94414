"""Every kind of file, changed at random: ``support/mutated_files.py`` does many more by hand."""

from __future__ import annotations

from pathlib import Path

from mutated_files import faults, kinds

EACH = 5


def test_no_file_is_answered_with_a_traceback(tmp_path: Path) -> None:
    wrong = {
        name: found
        for name, kind in kinds(tmp_path).items()
        if (found := [w for _, w in faults(kind, tmp_path / name, EACH, f"files {name}") if w])
    }
    assert wrong == {}
