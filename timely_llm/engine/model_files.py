"""Looks at a model folder before an inference library does, so that a fault is named in one line.

Pure but for reading files: it knows what a folder must hold, not how a model is run.
"""

from __future__ import annotations

from pathlib import Path

from timely_llm.protocols.engine import ModelBroken, ModelNotFound
from timely_llm.validation.names import did_you_mean
from timely_llm.validation.reader import json_object, json_value

_CONFIGS = ("config.json", "params.json")
_WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".gguf")
_TOKENIZERS = ("tokenizer.json", "tokenizer.model", "tekken.json", "vocab.json", "vocab.txt")


def model_folder(model: str) -> Path | None:
    """The folder or file that ``model`` names; None if it is the name of a model elsewhere.

    ``ModelNotFound`` if it is neither: an empty text, or a path that leads nowhere.
    """
    if not model:
        raise ModelNotFound("no model is named")
    path = Path(model).expanduser()
    if path.exists():
        return path
    beside = path.parent.is_dir() and "/" in model
    if beside or model.startswith((".", "/", "~")) or model.count("/") > 1:
        near = [other.name for other in path.parent.iterdir()] if beside else []
        likely = did_you_mean(path.name, near, " ({})")
        raise ModelNotFound(f"there is no model at {model!r}{likely}")
    return None


def check_model(folder: Path, *, weights: bool = True, tokenizer: bool = True) -> int:
    """Check that the folder holds a whole model; returns the bytes of its weights.

    ``weights`` or ``tokenizer`` False: they come from elsewhere. ``ModelBroken`` names the file and
    the fault.
    """
    if folder.is_file():
        return folder.stat().st_size
    names = sorted(path.name for path in folder.iterdir())
    configs = [name for name in _CONFIGS if name in names]
    if not configs:
        raise ModelBroken(f"model {str(folder)!r} has no config.json")
    _check_json(folder / configs[0])
    files = [folder / name for name in names if name.endswith(_WEIGHTS)]
    if weights and not files:
        raise ModelBroken(f"model {str(folder)!r} has no weights ({', '.join(_WEIGHTS)})")
    for path in files:
        if path.suffix == ".safetensors":
            _check_safetensors(path)
    if tokenizer and not any(name in names for name in _TOKENIZERS):
        raise ModelBroken(f"model {str(folder)!r} has no tokenizer ({', '.join(_TOKENIZERS[:3])})")
    if "tokenizer.json" in names:
        _check_json(folder / "tokenizer.json")
    return sum(path.stat().st_size for path in files)


def _check_json(path: Path) -> None:
    try:
        json_object(path.read_bytes())
    except ValueError as error:
        raise ModelBroken(f"{str(path)!r} {error}") from None


def _check_safetensors(path: Path) -> None:
    """Header and length: a download that broke off is found here, not in the middle of loading."""
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > size - 8:
            raise ModelBroken(f"{str(path)!r} is cut off or not safetensors ({size} bytes)")
        try:
            header = json_value(file.read(length))
            ends = [entry["data_offsets"][1] for name, entry in header.items() if name[:2] != "__"]
        except (ValueError, KeyError, TypeError, AttributeError):
            raise ModelBroken(f"{str(path)!r} has no valid safetensors header") from None
    needed = 8 + length + max(ends, default=0)
    if size < needed:
        raise ModelBroken(f"{str(path)!r} is cut off: has {size} bytes of {needed}")
