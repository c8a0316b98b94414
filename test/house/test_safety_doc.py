"""The table of faults in ``docs/safety.md`` names tests that are there."""

import re

from timely_llm.paths import share

DOC = share("docs", "safety.md")
TESTS = DOC.parent.parent / "test"


def test_every_test_that_the_safety_page_names_is_there():
    named = re.findall(r"`([\w/]+\.py)::(\w+)`", DOC.read_text(encoding="utf-8"))
    assert len(named) > 30
    missing = [
        f"{file}::{name}"
        for file, name in named
        if f"def {name}(" not in (TESTS / file).read_text(encoding="utf-8")
    ]
    assert missing == []
