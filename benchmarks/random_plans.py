"""What becomes of whatever a model writes: it is a sound plan, or refused, and none goes on for
ever."""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from collections.abc import Iterator

from benchmarks.figures import Figure, Report
from benchmarks.generation import MAX_TOKENS, Bench, bundled_model, running
from timely_llm.language.parser import PlanError
from timely_llm.language.segmenter import PlanSegmenter
from tools.random_model import make_random_model

BATCH = 16
KINDS = ("tello", "indy7")


def run(count: int = 500, seed: int = 0) -> Report:
    """``count`` instructions of random words, half for each robot, on both models."""
    figures, data = [], {}
    with tempfile.TemporaryDirectory() as folder:
        models: dict[str, str] = {
            "bundled": bundled_model(),
            "random weights": str(make_random_model(folder, seed, length=8192)),
        }
        for label, model in models.items():
            found: Counter[str] = Counter()
            names: Counter[str] = Counter()
            examples: list[str] = []
            for kind in KINDS:
                with running(model, kind, BATCH) as bench:
                    _plan_all(bench, count // len(KINDS), seed, found, names, examples)
            cut = found["cut"]
            figures += [
                Figure(f"{label}: sound plans", f"{found['sound']} of {count}"),
                Figure(f"{label}: refused by the check", f"{found['refused']} of {count}"),
                Figure(f"{label}: cut by {MAX_TOKENS} tokens", str(cut), "0", not cut),
                Figure(f"{label}: different skills", str(len(names))),
            ]
            data[label] = {"found": found, "skills": names, "refused": examples}
    return Report(f"Plans for {count} random instructions", figures, data)


def instructions(count: int, seed: int) -> Iterator[str]:
    """Nonsense of 1 to 30 words: letters of several scripts, quotes, brackets, plan text."""
    generator = random.Random(seed)
    pieces = ["the cat", "mf(", "')", "->", "{", "fly", "左へ", "é", "'", '"', "%s", "</s>", "100"]
    for _ in range(count):
        words = [_word(generator, pieces) for _ in range(generator.randint(1, 30))]
        yield " ".join(words)


def _word(generator: random.Random, pieces: list[str]) -> str:
    if generator.random() < 0.3:
        return generator.choice(pieces)
    return "".join(generator.choices("abcdefghijklmnopqrstuvwxyz", k=generator.randint(1, 9)))


def _plan_all(
    bench: Bench, count: int, seed: int, found: Counter, names: Counter, refused: list[str]
) -> None:
    waiting = iter(instructions(count, seed))
    live: dict[str, PlanSegmenter] = {}
    more = True
    while live or more:
        while more and len(live) < BATCH:
            instruction = next(waiting, None)
            more = instruction is not None
            if more:
                live[bench.submit(instruction, seed=seed)] = PlanSegmenter(bench.skills)
        for name, output in bench.engine.step(list(live)).outputs.items():
            try:
                for segment in live[name].feed(output.text, output.finish == "stop"):
                    names.update(call.name for call in segment.calls)
            except PlanError as error:
                refused.append(str(error))
                found["refused"] += 1
                bench.engine.abort(name)
                del live[name]
                continue
            if output.finish is not None:
                found["sound" if output.finish == "stop" else "cut"] += 1
                del live[name]
