#!/usr/bin/env python3
"""Makes the bundled planner again: draws the data, trains tokenizer and model, saves the folder.

    python tools/train_planner.py --out models/tiny_planner
    python tools/train_planner.py --start models/tiny_planner --out mine

The second one retrains: it goes on from a model's weights with its tokenizer, as after a change of
the data that ``tools/planner`` draws: names of your own objects, another phrasing, one more family.

The same options give the same data and the same start; the weights also depend on torch's version
and the processor. Needs torch and tokenizers, no network.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
import torch.multiprocessing as mp  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402
from tokenizers import Tokenizer  # noqa: E402

from timely_llm.language.skills import SkillSet  # noqa: E402
from timely_llm.prompts.template import FILE_NAME, PromptTemplate  # noqa: E402
from tools.planner import dataset, tokens  # noqa: E402
from tools.planner.llama import Llama, Size  # noqa: E402
from tools.planner.training import Encoder, Trainer, score, shares  # noqa: E402

MODEL = ROOT / "models" / "tiny_planner"
SHARES = {"tello": 34, "indy7": 18, "rover": 12}  # of 64 pairs
ANEW, AGAIN = (2500, 3e-3), (1500, 1.5e-3)  # steps and highest rate, from nothing and from weights


def computed_in() -> str:
    """A processor without instructions for bfloat16 takes many times as long in it."""
    flags = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    return "bfloat16" if {"avx512_bf16", "amx_bf16"} & set(flags.split()) else "float32"


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("--out", type=Path, default=MODEL, help="folder of the model")
    add("--start", type=Path, help="folder of a model to go on from; its sizes must be these")
    add("--steps", type=int, help="optimizer steps (2500; 1500 from --start)")
    add("--pairs", type=int, default=64, help="pairs of one step")
    add("--rate", type=float, help="highest learning rate (3e-3; 1.5e-3 from --start)")
    add("--warmup", type=int, default=100, help="steps until the highest rate")
    add("--decay", type=float, default=0.6, help="share of the steps in which the rate falls")
    add("--vocabulary", type=int, default=1536, help="tokens of the tokenizer")
    add("--hidden", type=int, default=192, help="hidden size, a multiple of 32")
    add("--inner", type=int, default=512, help="inner size of the feed-forward part")
    add("--layers", type=int, default=5, help="layers")
    add("--varied", type=float, default=0.3, help="share of batches with other skills or order")
    add("--seed", type=int, default=1, help="of data and weights")
    add("--workers", type=int, default=min(os.cpu_count() or 1, 4), help="processes, one core each")
    add("--dtype", choices=("bfloat16", "float32"), default="bfloat16", help="of saved weights")
    add("--compute", choices=("bfloat16", "float32"), default=computed_in(), help="of training")
    add("--report", type=int, default=500, help="steps between scores")
    add("--checkpoint", type=Path, help="file to resume from and to save to at each score")
    settings = parser.parse_args()
    steps, rate = AGAIN if settings.start else ANEW
    settings.steps = steps if settings.steps is None else settings.steps
    settings.rate = rate if settings.rate is None else settings.rate
    return settings


def per_step(pairs: int) -> dict[str, int]:
    """The pairs of each kind, at least one: what is left over is the drone's."""
    others = {kind: max(1, round(pairs * SHARES[kind] / 64)) for kind in ("indy7", "rover")}
    return {"tello": max(1, pairs - sum(others.values())), **others}


def make_tokenizer(skills: dict[str, SkillSet], template: PromptTemplate, size: int, seed: int):
    """Trained on 400 batches of prompts and plans."""
    texts = []
    stream = dataset.batches(skills, random.Random(seed), per_step(128), 0.3)
    for _ in range(400):
        for chosen, pairs in next(stream):
            texts.append(template.system(chosen))
            for pair in pairs:
                texts += [template.user(chosen, pair.scene, pair.instruction), pair.plan]
    return tokens.train_tokenizer(texts, size)


def save(model: Llama, encoder: Encoder, folder: Path, dtype: str) -> None:
    """The folder as vLLM loads it."""
    folder.mkdir(parents=True, exist_ok=True)
    tokens.save_tokenizer(encoder.tokenizer, folder)
    config = model.size.config(encoder.end, dtype)
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    generation = {"eos_token_id": encoder.end, "pad_token_id": encoder.end, "do_sample": False}
    (folder / "generation_config.json").write_text(json.dumps(generation, indent=1) + "\n")
    weights = model.export(getattr(torch, dtype))
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    if not (folder / FILE_NAME).exists():
        (folder / FILE_NAME).write_text((MODEL / FILE_NAME).read_text())


def rate_at(step: int, settings: argparse.Namespace) -> float:
    """Linear warm-up, then constant, then linear down to 1% of the highest rate."""
    left = (settings.steps - step) / (settings.decay * settings.steps)
    return settings.rate * max(0.01, min(1.0, (step + 1) / settings.warmup, left))


def report(model: Llama, encoder: Encoder, examples: list[dataset.Example], shown: int = 0) -> None:
    """Print the exact plans by family, without a grammar: a first look."""
    counts, wrong = score(model, encoder, examples)
    right, total = (sum(values) for values in zip(*counts.values(), strict=True))
    families = ", ".join(f"{name} {a}/{b}" for name, (a, b) in sorted(counts.items()) if a < b)
    print(f"  held out: {right}/{total} exact; below all: {families}", flush=True)
    for example in wrong[:shown]:
        print(f"  not exact: {example.pair.family}: {example.pair.instruction}", flush=True)


def work(rank: int, settings: argparse.Namespace, store: str) -> None:
    """What each process does: its share of every batch. The first one also reports and saves."""
    torch.set_num_threads(1)
    cores = sorted(os.sched_getaffinity(0))
    if settings.workers <= len(cores):  # the system may else put two of them on one core
        os.sched_setaffinity(0, {cores[rank]})
    torch.manual_seed(settings.seed)
    if settings.workers > 1:
        dist.init_process_group(
            "gloo", init_method=f"file://{store}", rank=rank, world_size=settings.workers
        )
    skills = dataset.load_skills()
    template = PromptTemplate.from_file(MODEL / FILE_NAME)
    saved = None
    if settings.checkpoint and settings.checkpoint.exists():
        saved = torch.load(settings.checkpoint, weights_only=True)
        tokenizer = Tokenizer.from_str(saved["tokenizer"])
    elif settings.start:
        tokenizer = Tokenizer.from_file(str(settings.start / "tokenizer.json"))
    else:
        tokenizer = make_tokenizer(skills, template, settings.vocabulary, settings.seed)
    encoder = Encoder(tokenizer, template)
    size = Size(tokenizer.get_vocab_size(), settings.hidden, settings.inner, settings.layers,
                settings.hidden // 32)  # fmt: skip
    model = Llama(size)
    if settings.compute == "bfloat16":
        model = model.bfloat16()
    if settings.start:
        model.load(load_file(settings.start / "model.safetensors"))
    trainer = Trainer(model, settings.rate)
    first = trainer.restore(saved) if saved else 0
    if rank == 0:
        parameters = sum(parameter.numel() for parameter in model.parameters())
        print(f"{parameters / 1e6:.2f} M parameters, vocabulary {size.vocab_size}", flush=True)
    train(trainer, encoder, skills, settings, first, rank)
    if rank == 0:
        report(model, encoder, dataset.held_out(skills, 2000), shown=40)
        save(model, encoder, settings.out, settings.dtype)
        print(f"saved to {settings.out}")


def train(
    trainer: Trainer,
    encoder: Encoder,
    skills: dict[str, SkillSet],
    settings: argparse.Namespace,
    first: int,
    rank: int,
) -> None:
    """All steps; prints loss, speed and, now and then, scores on some of the held-out set."""
    stream = dataset.batches(
        skills,
        random.Random(settings.seed + 1 + first),
        per_step(settings.pairs),
        settings.varied,
    )
    examples = dataset.held_out(skills, 400)
    started, losses = time.monotonic(), []
    for step in range(first, settings.steps):
        micros = [m for chosen, pairs in next(stream) for m in encoder.micros(chosen, pairs)]
        own = shares(micros, settings.workers)[rank]
        losses.append(trainer.step(own, rate_at(step, settings)))
        if rank == 0 and (step + 1) % 20 == 0:
            spent = time.monotonic() - started
            mean = sum(losses) / len(losses)
            print(f"step {step + 1}/{settings.steps}: loss {mean:.4f}, {spent:.0f} s", flush=True)
            losses = []
        if rank == 0 and (step + 1) % settings.report == 0:
            report(trainer.model, encoder, examples)
            if settings.checkpoint:
                state = trainer.state(step + 1) | {"tokenizer": encoder.tokenizer.to_str()}
                torch.save(state, settings.checkpoint)


def main() -> None:
    settings = options()
    with tempfile.TemporaryDirectory() as folder:
        store = str(Path(folder, "store"))
        if settings.workers == 1:
            work(0, settings, store)
        else:
            # Ended from outside, it ends its workers too.
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
            mp.spawn(work, (settings, store), settings.workers, daemon=True)


if __name__ == "__main__":
    main()
