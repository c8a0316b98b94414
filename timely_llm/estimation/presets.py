"""Engines by name: step times and memory of the machines in the papers, each with its source.

The one place of these numbers. ``OWN_WORDS`` are fitted by ``benchmarks/prefill_fit.py``;
``python -m benchmarks prefill_fit`` prints the fit.
"""

from __future__ import annotations

from dataclasses import dataclass

from timely_llm.estimation.step_time import StepLatency
from timely_llm.validation.names import hint

GIB = 2**30
BLOCK = 16  # tokens of a KV block, vLLM's default on a GPU
_RESERVED = 0.9  # of the GPU's memory for weights and KV cache, vLLM's default


@dataclass(frozen=True, slots=True)
class EngineModel:
    """An engine as numbers.

    ``latency`` gives a step's time in s; the KV cache holds ``kv_tokens`` in blocks of
    ``block_size``; a step computes at most ``prefill_chunk`` prompt tokens. Bringing a token's
    evicted KV back from host memory takes ``reload_per_token`` s, 0 where that is not known.
    Handing a goal to the engine takes ``submit`` s between two steps. ``decode_step`` is the time
    of a decode step alone in s, by which workloads are scaled; 0: what ``latency`` says. A size
    below 1 is a ``ValueError``.
    """

    name: str
    latency: StepLatency
    kv_tokens: int
    block_size: int = BLOCK
    prefill_chunk: int = 2048
    source: str = ""
    reload_per_token: float = 0.0
    submit: float = 0.0
    decode_step: float = 0.0

    def __post_init__(self) -> None:
        for name in ("kv_tokens", "block_size", "prefill_chunk"):
            if getattr(self, name) < 1:
                raise ValueError(f"{self.name}: {name} is {getattr(self, name)}: at least 1")


def kv_room(memory: float, weights: float, bytes_per_token: int) -> int:
    """Tokens, in whole blocks, that fit beside ``weights`` into a GPU of ``memory`` bytes."""
    tokens = int((memory * _RESERVED - weights) / bytes_per_token)
    return tokens // BLOCK * BLOCK


PUBLISHED_PREFILL = 0.13331 / 1300
"""s a prompt token of Llama3-8B on an RTX 4090: 1,300 of them in 133.31 ms (TimelyLLM, section 2).
A goal's own words, a hundred beside a cached prompt, cost more each: see ``OWN_WORDS``."""

KV_READ = 0.00038
"""s of each further sequence in the batch: 2,900 cached tokens of 131,072 bytes at 1,008 GB/s."""

OWN_WORDS: dict[float, float] = {0.0: 4.1553e-4, KV_READ: 3.5587e-4, 0.002: 8.358e-5}
"""s a token of a goal's own words, by the time of each further sequence (s): with it ``vllm``, max
batch 12, has the paper's mean utility, 0.74, on WID2 at load 1."""


def rtx4090_llama3_8b(
    per_sequence: float = KV_READ, per_prefill_token: float | None = None, name: str = ""
) -> EngineModel:
    """TimelyLLM's engine. The paper leaves open what each further sequence adds to a step, and what
    a goal's own words cost: the first is chosen, the second fitted to it (``OWN_WORDS``)."""
    if per_prefill_token is None:
        per_prefill_token = OWN_WORDS.get(per_sequence, PUBLISHED_PREFILL)
    source = (
        "TimelyLLM, sections 2 and 7.1: 21.8 ms a token alone, 131,072 bytes of KV a token; "
        f"{per_sequence * 1e3:g} ms a further sequence, "
        f"{per_prefill_token * 1e3:.4g} ms a prompt token"
    )
    return EngineModel(
        name or f"rtx4090-llama3-8b ({per_sequence * 1e3:g} ms a sequence)",
        StepLatency((0.0218,), per_sequence, per_prefill_token=per_prefill_token, source=source),
        kv_tokens=kv_room(24 * GIB, 16.06e9, 131_072),
        source=source,
    )


def _rtx4060ti_chatglm2_6b() -> EngineModel:
    """SLICE's engine. Its prefill is not published: 2 FLOP a weight and token at 22 TFLOP/s."""
    table = (14, 27, 38, 50, 60, 72, 83, 125, 126, 123, 124, 125, 126, 123, 124)  # ms
    source = (
        "SLICE, Figure 1a: l(b) of ChatGLM2-6B-INT4 on an RTX 4060 Ti 16 GB for batches of 1 to "
        "15; prefill estimated at 22 TFLOP/s, KV cache from 16 GB less the paper's 6 GB of weights"
    )
    latency = StepLatency(
        tuple(time / 1e3 for time in table), per_prefill_token=2 * 6.2e9 / 22e12, source=source
    )
    # 28 layers, 2 groups of 128, keys and values of 2 bytes.
    room = kv_room(16 * GIB, 6e9, 28 * 2 * 128 * 2 * 2)
    return EngineModel("rtx4060ti-chatglm2-6b", latency, room, source=source)


def _semantic(
    name: str,
    decode: tuple[float, float],
    prefill: tuple[float, float],
    reload: float,
    room: int,
    note: str = "",
) -> EngineModel:
    """Coefficients as in the paper: a decode step takes ``decode[0]`` s a cached token and
    ``decode[1]`` s, a prompt of n tokens ``prefill[0] n^2 + prefill[1] n`` s."""
    source = f"Semantic Scheduling, appendix B{note}; batch size is free, as in the paper"
    latency = StepLatency(
        (decode[1],),
        per_kv_token=decode[0],
        per_prefill_token=prefill[1],
        per_prefill_square=prefill[0],
        source=source,
    )
    return EngineModel(name, latency, room, source=source, reload_per_token=reload)


_PUBLISHED = (
    rtx4090_llama3_8b(name="rtx4090-llama3-8b"),
    rtx4090_llama3_8b(0.0, name="rtx4090-llama3-8b-slope0"),
    rtx4090_llama3_8b(0.002, name="rtx4090-llama3-8b-slope2"),
    _rtx4060ti_chatglm2_6b(),
    _semantic(
        "a100-qwen1.5-4b",
        decode=(5.913e-9, 1.196e-2),
        prefill=(1.466e-9, 1.052e-4),
        reload=1e-4,
        room=kv_room(40 * GIB, 7.9e9, 40 * 2560 * 2 * 2),
        note=", its quadratic prefill coefficient read as 1.466e-9 (printed: 1.466e-2)",
    ),
    _semantic(
        "a100-qwen1.5-7b",
        decode=(1.349e-8, 1.330e-2),
        prefill=(5.135e-7, 1.481e-4),
        reload=1e-4,
        room=kv_room(40 * GIB, 15.45e9, 32 * 4096 * 2 * 2),
    ),
    _semantic(
        "a5000-qwen1.5-7b",
        decode=(2.117e-6, 2.727e-2),
        prefill=(1.859e-9, 2.175e-4),
        reload=3e-4,
        room=kv_room(24 * GIB, 15.45e9, 32 * 4096 * 2 * 2),
    ),
)

PRESETS = {model.name: model for model in _PUBLISHED}
"""All presets by name. ``-slope0`` and ``-slope2`` are the RTX 4090 at the two other batch
slopes."""

PACES = {name: model.latency for name, model in PRESETS.items()} | {
    "rtx4090-llama3-8b": rtx4090_llama3_8b(per_prefill_token=PUBLISHED_PREFILL).latency
}
"""Step times that a real engine can be slowed down to, by preset: those that were published,
without what is fitted to a workload."""


class UnknownPreset(ValueError):
    """No engine of that name."""


def get(name: str) -> EngineModel:
    """The preset ``name``, or ``UnknownPreset`` with the nearest known one."""
    if name not in PRESETS:
        raise UnknownPreset(f"engine preset {name!r} is unknown{hint(name, PRESETS)}")
    return PRESETS[name]
