"""What an unknown name was probably meant to be."""

from timely_llm.validation.names import did_you_mean, hint


def test_did_you_mean():
    assert did_you_mean("max_modl_len", ["max_model_len", "seed"], " ({})") == (
        " (did you mean 'max_model_len'?)"
    )
    assert did_you_mean("zzz", ["seed"], " ({})") == ""


def test_where_none_is_alike_nothing_is_asked_unless_anything_will_do():
    known = ("kind", "skills", "bounds")
    assert did_you_mean("kimd", known) == "; did you mean 'kind'?"
    assert did_you_mean("xyz", known) == ""
    assert did_you_mean("sky", known, cutoff=0) == "; did you mean 'skills'?"
    assert did_you_mean("kind", ()) == ""


def test_a_hint_lists_what_is_known():
    assert hint("kimd", ("kind", "bounds")) == "; did you mean 'kind'? (known: bounds, kind)"
    assert hint("xyz", ("b", "a"), "registered") == " (registered: a, b)"
    assert hint("xyz", ()) == " (known: none)"
