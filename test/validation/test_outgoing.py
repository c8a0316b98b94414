"""What goes out: text that a terminal does not obey, and JSON that every reader takes."""

from __future__ import annotations

import json
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from timely_llm.validation.outgoing import finite, json_text, visible

INF, NAN = float("inf"), float("nan")


def test_control_characters_are_shown() -> None:
    assert visible("\x1b[2J\x07\r\x9b1m\x7f") == "\\x1b[2J\\x07\\x0d\\x9b1m\\x7f"
    assert visible("a\u202eb\ud800") == "a\\u202eb\\ud800"
    assert visible("Fly 1 m;\n\tgrüße 猫 😀") == "Fly 1 m;\n\tgrüße 猫 😀"


@given(st.text(st.characters()))
def test_nothing_that_steers_a_terminal_is_left(text: str) -> None:
    shown = visible(text)
    assert visible(shown) == shown
    shown.encode()
    assert {c for c in shown if unicodedata.category(c) in ("Cc", "Cs")} <= {"\n", "\t"}


def test_what_is_no_number_is_null() -> None:
    value = {"a": [1, INF, (NAN, {"b": -INF})], "c": 1e308, "d": True, "e": "NaN"}
    assert finite(value) == {"a": [1, None, [None, {"b": None}]], "c": 1e308, "d": True, "e": "NaN"}
    assert json.loads(json_text(value)) == finite(value)
    assert json_text({"a": [1, NAN]}) == '{"a":[1,null]}'
    assert json_text([1], indent=1) == "[\n 1\n]"
