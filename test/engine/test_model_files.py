"""Model folders: whole ones pass, and each fault is named in one line before anything is loaded."""

import json

import pytest

from timely_llm.engine.model_files import check_model, model_folder
from timely_llm.protocols.engine import ModelBroken, ModelNotFound


def safetensors(size: int, **tensors: tuple[int, int]) -> bytes:
    """A safetensors file with ``size`` bytes of data; tensors by their offsets."""
    entries = {
        name: {"dtype": "U8", "shape": [end - begin], "data_offsets": [begin, end]}
        for name, (begin, end) in tensors.items()
    }
    header = json.dumps({"__metadata__": {"format": "pt"}} | entries).encode()
    return len(header).to_bytes(8, "little") + header + bytes(size)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    (tmp_path / "tokenizer.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(safetensors(10, a=(0, 4), b=(4, 10)))
    return tmp_path


def test_a_whole_model_passes_and_is_weighed(folder):
    weights = folder / "model.safetensors"
    assert check_model(folder) == weights.stat().st_size
    assert check_model(weights) == weights.stat().st_size


def test_a_name_is_left_to_the_library_and_a_path_must_exist(tmp_path):
    assert model_folder("organisation/model") is None
    assert model_folder("model") is None
    assert model_folder(str(tmp_path)) == tmp_path
    for missing in (str(tmp_path / "no"), "./no", "~/surely/not/there", "a/b/c"):
        with pytest.raises(ModelNotFound, match=f"no model at '{missing}'"):
            model_folder(missing)
    with pytest.raises(ModelNotFound, match="no model is named"):
        model_folder("")


def test_a_wrong_path_in_a_folder_that_is_there_is_no_name(tmp_path, monkeypatch):
    (tmp_path / "models" / "tiny_planner").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelNotFound, match=r"'models/tiny_plannr' \(did you mean 'tiny_planner'"):
        model_folder("models/tiny_plannr")


@pytest.mark.parametrize(
    ("file", "content", "error"),
    [
        ("config.json", None, "has no config.json"),
        ("config.json", b"{", "config.json' is not JSON"),
        ("config.json", b"[]", "config.json' is not a JSON object"),
        ("tokenizer.json", None, "has no tokenizer"),
        ("tokenizer.json", b"{]", "tokenizer.json' is not JSON"),
        ("model.safetensors", None, "has no weights"),
        ("model.safetensors", b"", "cut off or not safetensors"),
        ("model.safetensors", b"version https://git-lfs", "cut off or not safetensors"),
        ("model.safetensors", safetensors(9, a=(0, 4), b=(4, 10)), "is cut off: has"),
        ("model.safetensors", b"\2" + bytes(7) + b"[]", "no valid safetensors header"),
    ],
)
def test_each_fault_is_named(folder, file, content, error):
    if content is None:
        (folder / file).unlink()
    else:
        (folder / file).write_bytes(content)
    with pytest.raises(ModelBroken, match=error) as caught:
        check_model(folder)
    assert str(folder) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_weights_and_tokenizer_may_come_from_elsewhere(folder):
    (folder / "tokenizer.json").unlink()
    (folder / "model.safetensors").unlink()
    assert check_model(folder, weights=False, tokenizer=False) == 0
