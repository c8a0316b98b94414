"""Options that cannot be end in words and with exit status 2, not in a traceback."""

import pytest
import typer
from typer.testing import CliRunner

from timely_llm.cli.app import app
from timely_llm.cli.exit_status import status_of
from timely_llm.cli.options import parameters
from timely_llm.language.loader import load_skill_set
from timely_llm.validation.reader import FileError

ODD = ["2026-01-01", "2001-99-99", "0x_", "!!set {b}", "!!binary QQ==", "[2026-01-01]", "[[1]]"]
ODD += ["!!int x", "!!bool x", "!!timestamp x", "!foo 3", "[null]", "[", "1" * 5000, "[" * 3000]


def run(*arguments):
    result = CliRunner().invoke(app, [*map(str, arguments)], terminal_width=500)
    return result.exit_code, " ".join(result.output.replace("│", " ").split())


@pytest.mark.parametrize("value", ODD)
def test_a_parameter_that_ros_has_no_type_for_is_named(value):
    with pytest.raises(typer.BadParameter) as caught:
        parameters([f"pace:={value}"])
    assert str(caught.value).startswith("'pace:=")
    assert caught.value.param_hint == "--param"


def test_parameters_are_truths_numbers_texts_and_lists_of_these():
    given = ["a:=true", "b:=3", "c:=0.5", "d:=x", "e:=[1, 2.5]", "f:=[]", 'g:={"a": 1}', "h:="]
    assert parameters(given, model="m", pace="") == {
        **{"model": "m", "a": True, "b": 3, "c": 0.5, "d": "x", "e": [1, 2.5], "f": []},
        **{"g": '{"a": 1}', "h": ""},
    }
    for text in ("a", ":=5"):
        with pytest.raises(typer.BadParameter, match="must be NAME:=VALUE"):
            parameters([text])


def test_serve_refuses_a_date():
    status, words = run("serve", "--param", "pace:=2026-01-01")
    assert status == 2
    assert "--param" in words and "pace" in words


def test_addresses_of_simulated_drones_must_exist():
    status, words = run("sim-tello", "--host", "255.255.255.255", "--count", 2)
    assert status == 2
    assert "--host" in words


def test_a_broken_skill_set_is_named(tmp_path):
    path = tmp_path / "broken.yaml"
    path.write_text("skills: 3")
    status, words = run("profile", "--out", tmp_path / "p.yaml", "--kind", path)
    assert status == 2
    assert "--kind" in words and "broken.yaml:" in words.replace(" ", "")
    with pytest.raises(FileError) as caught:
        load_skill_set(path)
    assert status_of(caught.value) == 2
