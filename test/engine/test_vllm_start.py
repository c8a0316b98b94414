"""Starts that fail: each says in one line whose fault it is, and a right start works afterwards."""

import json
import shutil

import pytest
from driving import request, run_to_end

from timely_llm.engine.config import EngineConfig
from timely_llm.engine.vllm_engine import VllmEngine
from timely_llm.protocols.engine import (
    EngineDead,
    EngineError,
    InvalidArgument,
    ModelBroken,
    ModelNotFound,
    UnknownArgument,
)
from tools.random_model import make_random_model


@pytest.mark.parametrize(
    ("arguments", "kind", "error"),
    [
        ({"model": "/no/such/model"}, ModelNotFound, "no model at '/no/such/model'"),
        (
            {"engine_args": {"max_modl_len": 1}},
            UnknownArgument,
            r"'max_modl_len' \(did you mean 'max_model_len'\?\)",
        ),
        ({"engine_args": {"scheduler_cls": "x"}}, InvalidArgument, "set by the engine itself"),
        ({"engine_args": {"dtype": "floaty"}}, InvalidArgument, "dtype.*'float32'"),
        ({"engine_args": {"max_model_len": 1 << 20}}, InvalidArgument, "max_model_len"),
        ({"sampling": {"temprature": 1}}, UnknownArgument, "did you mean 'temperature'"),
        ({"sampling": {"temperature": -1}}, InvalidArgument, "temperature must be non-negative"),
        ({"sampling": {"max_tokens": 9}}, InvalidArgument, "'max_tokens' is set for each request"),
        ({"max_batch": 0}, InvalidArgument, "max_batch is 0: must be at least 1"),
    ],
)
def test_arguments_are_checked(model, arguments, kind, error):
    with pytest.raises(kind, match=error) as caught:
        VllmEngine(EngineConfig(**({"model": model} | arguments)))
    assert type(caught.value) is kind
    assert "\n" not in str(caught.value)


def test_a_model_that_is_whole_but_wrong(tmp_path):
    """What only vLLM can see: a configuration that does not fit the weights."""
    folder = make_random_model(tmp_path / "wrong")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"hidden_size": 64}))
    with pytest.raises(ModelBroken, match="cannot be started") as caught:
        VllmEngine(EngineConfig(str(folder)))
    assert "\n" not in str(caught.value)
    (folder / "config.json").write_text(json.dumps(config | {"architectures": ["NoSuchModel"]}))
    with pytest.raises(EngineError, match="NoSuchModel"):
        VllmEngine(EngineConfig(str(folder)))


def test_a_broken_model_is_found_before_it_is_loaded(model, tmp_path):
    folder = tmp_path / "broken"
    shutil.copytree(model, folder)
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1000])
    with pytest.raises(ModelBroken, match="model.safetensors' is cut off"):
        VllmEngine(EngineConfig(str(folder)))


def test_a_wrong_chat_template_leaves_nothing_behind_and_the_next_start_works(model, capfd):
    with pytest.raises(InvalidArgument, match="chat template"):
        VllmEngine(EngineConfig(model, chat_template="{{ nothing.at.all }}"))
    engine = VllmEngine(EngineConfig(model, max_batch=1))
    engine.submit(request("a", max_tokens=3))
    assert run_to_end(engine, ["a"]).ends == {"a": "length"}
    engine.close()
    engine.close()
    with pytest.raises(EngineDead, match="it was closed"):
        engine.step(["a"])
    out, err = capfd.readouterr()
    assert (out, err) == ("", "")
