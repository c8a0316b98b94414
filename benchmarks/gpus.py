"""``python -m benchmarks.gpus``: which GPU holds which model, as the table in docs/operations.md.

Memory is computed from the models' own sizes. A decode step alone reads all weights once: its time
is theirs over the bandwidth, at the share of it that published engines reach.
"""

from __future__ import annotations

from statistics import fmean

from timely_llm.estimation.presets import GIB, PRESETS, kv_room

GPUS = {  # memory in GiB, bandwidth in GB/s, by the vendor's data sheet
    "RTX 4060": (8, 272),
    "RTX 4060 Ti": (16, 288),
    "RTX A5000": (24, 768),
    "RTX 4090": (24, 1008),
    "A100": (40, 1555),
}
MODELS = {  # weights in bytes, two a parameter; bytes of a token's KV: layers, KV heads, width
    "Qwen2.5-Coder-0.5B": (1.26e9, 24 * 2 * 64 * 2 * 2),
    "Qwen2.5-Coder-1.5B": (3.55e9, 28 * 2 * 128 * 2 * 2),
    "Qwen2.5-7B": (15.23e9, 28 * 4 * 128 * 2 * 2),
    "Llama3-8B": (16.06e9, 32 * 8 * 128 * 2 * 2),
}
MEASURED = {  # by preset: what it was measured on, and with how many bytes of weights
    "rtx4090-llama3-8b": ("RTX 4090", 16.06e9),
    "a100-qwen1.5-7b": ("A100", 15.45e9),
    "a5000-qwen1.5-7b": ("RTX A5000", 15.45e9),
}
PLANS, TOKENS = 8, 1024  # what must fit beside the weights: as many plans of so many tokens
ACTIVATIONS = 1e9  # bytes, of a step of vLLM's 2,048 tokens and its CUDA graphs


def share() -> float:
    """Of the bandwidth, reached in a decode step alone."""
    return fmean(
        weights / (GPUS[gpu][1] * 1e9) / PRESETS[name].latency.decode[0]
        for name, (gpu, weights) in MEASURED.items()
    )


def cell(gpu: str, model: str) -> str:
    """Tokens of plans that fit beside the weights, and the time of a step."""
    memory, bandwidth = GPUS[gpu]
    weights, per_token = MODELS[model]
    room = kv_room(memory * GIB, weights + ACTIVATIONS, per_token)
    if room < PLANS * TOKENS:
        return "no"
    step = weights / (bandwidth * 1e9 * share())
    return f"{room // 1000} k, {step * 1e3:.1f} ms"


def table() -> str:
    lines = [["GPU", *MODELS], ["---"] * (1 + len(MODELS))]
    for gpu, (memory, bandwidth) in GPUS.items():
        name = f"{gpu}, {memory} GiB, {bandwidth} GB/s"
        lines.append([name, *(cell(gpu, model) for model in MODELS)])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


if __name__ == "__main__":
    print(table())
    print(f"share of the bandwidth: {share():.2f}")
