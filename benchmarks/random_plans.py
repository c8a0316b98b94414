"""Whether whatever a model writes under the grammar parses and passes the argument checks."""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from collections.abc import Iterator

from benchmarks.figures import Figure, Report
from benchmarks.generation import MAX_TOKENS, Bench, bundled_model, running
from timely_llm.language.parser import Parser, PlanError
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
            whole = found["sound"] + found["wrong"]
            figures += [
                Figure(
                    f"{label}: sound plans",
                    f"{found['sound']} of {whole}",
                    "100%",
                    whole > 0 and not found["wrong"],
                ),
                Figure(f"{label}: cut by {MAX_TOKENS} tokens", f"{found['cut']} of {count}"),
                Figure(f"{label}: different skills", str(len(names))),
            ]
            data[label] = {"found": found, "skills": names, "wrong": examples}
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
    bench: Bench, count: int, seed: int, found: Counter, names: Counter, wrong: list[str]
) -> None:
    waiting = iter(instructions(count, seed))
    texts: dict[str, list[str]] = {}
    more = True
    while texts or more:
        while more and len(texts) < BATCH:
            instruction = next(waiting, None)
            more = instruction is not None
            if more:
                texts[bench.submit(instruction, seed=seed)] = []
        for name, output in bench.engine.step(list(texts)).outputs.items():
            texts[name].append(output.text)
            if output.finish is not None:
                plan = "".join(texts.pop(name))
                found[_verdict(bench, plan, output.finish, names, wrong)] += 1


def _verdict(bench: Bench, plan: str, finish: str, names: Counter, wrong: list[str]) -> str:
    checker = Parser(bench.skills)
    try:
        names.update(call.name for call in checker.feed(plan))
        if finish == "length":
            return "cut"
        checker.finish()
    except PlanError as error:
        wrong.append(f"{error}: {plan}")
        return "wrong"
    return "sound"
