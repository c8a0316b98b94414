"""How doubtful a plan may be, by parameter and by model."""

import pytest

from timely_llm.prompts import doubt


def test_a_number_none_or_what_was_calibrated(monkeypatch):
    monkeypatch.setattr(doubt, "calibrated", lambda: {"tiny": -0.25})
    assert doubt.min_logprob("-0.5", "/models/tiny") == -0.5
    assert doubt.min_logprob("none", "/models/tiny") is None
    assert doubt.min_logprob("auto", "/models/tiny") == -0.25
    assert doubt.min_logprob("auto", "/models/other") is None


@pytest.mark.parametrize("text", ["0.1", "nan", "-inf", "-1e9", "low", ""])
def test_what_else_is_refused(text):
    with pytest.raises(ValueError, match="must be auto, none or a number, -1000 to 0"):
        doubt.min_logprob(text, "tiny")


def test_the_table_of_the_package_can_be_read():
    assert all(-1000 <= value <= 0 for value in doubt.calibrated().values())
