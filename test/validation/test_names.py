"""What an unknown name was probably meant to be."""

from timely_llm.validation.names import did_you_mean


def test_did_you_mean():
    assert did_you_mean("max_modl_len", ["max_model_len", "seed"], " ({})") == (
        " (did you mean 'max_model_len'?)"
    )
    assert did_you_mean("zzz", ["seed"], " ({})") == ""
