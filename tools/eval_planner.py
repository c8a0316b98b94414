#!/usr/bin/env python3
"""How well the bundled planner learned what it was taught: ``make eval-planner``.

That is plans as ``tools/planner`` writes them, to the letter, through the vLLM engine under the
grammar; ``timely-llm eval`` judges what comes of plans. Prints the split, the exact plans by
family, the published tasks, and how it copes with names that were never trained. Exit status 1 if
fewer than 97% of the held-out plans or one published plan is not exact.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from timely_llm.language.parser import PlanError, parse  # noqa: E402
from timely_llm.prompts.fixed import FixedPrompt  # noqa: E402
from timely_llm.prompts.template import PromptTemplate  # noqa: E402
from tools.planner import dataset  # noqa: E402
from tools.planner.dataset import Example  # noqa: E402
from tools.planner.draw import HELD_OUT_NOUNS, HELD_OUT_SHARE  # noqa: E402

TARGET = 0.97
MAX_TOKENS = 512
TRAINING_SAMPLE = 100  # batches of the training stream that the split is checked against


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("--model", default=str(ROOT / "models" / "tiny_planner"), help="model folder or name")
    add("--prompt-template", default="", help="jinja2 file; default: the model's own")
    add("--count", type=int, default=2000, help="held-out instructions")
    add("--new-names", type=int, default=500, help="held-out instructions with new names")
    add("--seed", type=int, default=dataset.HELD_OUT_SEED, help="of the held-out instructions")
    add("--batch", type=int, default=64, help="generations in one engine step")
    add("--wrong", type=int, default=10, help="wrong plans to print")
    add("--json", type=Path, help="file for the scores and all wrong plans")
    return parser.parse_args()


def generate(engine, template: PromptTemplate, examples: list[Example]) -> list[str]:
    """The plan of each example, by one engine."""
    texts: dict[str, str] = defaultdict(str)
    shared: dict[int, FixedPrompt] = {}
    live: list[str] = []
    waiting = list(enumerate(examples))
    while waiting or live:
        while waiting and len(live) < engine.info.max_batch:
            number, example = waiting.pop(0)
            skills = example.skills
            fixed = shared.setdefault(id(skills), template.fixed(skills))
            user = template.user(skills, example.pair.scene, example.pair.instruction)
            request = fixed.request(str(number), number, user, MAX_TOKENS)
            engine.submit(request)
            live.append(request.id)
        for name, output in engine.step(live).outputs.items():
            texts[name] += output.text
            if output.finish:
                live.remove(name)
                if output.finish != "stop":
                    texts[name] += f" <{output.finish}>"
    return [texts[str(number)] for number in range(len(examples))]


def print_split(examples: list[Example]) -> None:
    """Say what was held out, and check it against a part of the training stream."""
    keys = {key for example in examples for key in example.pair.keys}
    instructions = {example.pair.instruction.lower() for example in examples}
    trained_keys, trained = set(), set()
    stream = dataset.batches(
        dataset.load_skills(), random.Random(2), {"tello": 68, "indy7": 36, "rover": 24}, 0.3
    )
    for _ in range(TRAINING_SAMPLE):
        for _, pairs in next(stream):
            trained_keys |= {key for pair in pairs for key in pair.keys}
            trained |= {pair.instruction.lower() for pair in pairs}
    print(f"Split: a hash holds out 1 in {HELD_OUT_SHARE} combinations of phrasing and object "
          "(or number).")  # fmt: skip
    print(f"Held out: {len(instructions)} different instructions with {len(keys)} combinations.")
    print(f"Of {len(trained)} training instructions drawn here with {len(trained_keys)} "
          f"combinations, {len(trained & instructions)} and {len(trained_keys & keys)} are among "
          "them.")  # fmt: skip
    print(f"New names: 1 in {HELD_OUT_NOUNS} nouns is never trained in any phrasing; these and "
          "made-up words.\n")  # fmt: skip


def problem(plan: str, example: Example) -> str:
    """What the plan checker says of the plan, or nothing."""
    try:
        parse(plan, example.skills)
    except PlanError as error:
        return str(error)
    return ""


def count_exact(examples: list[Example], plans: list[str]) -> int:
    return sum(plan == e.pair.plan for e, plan in zip(examples, plans, strict=True))


def print_scores(examples: list[Example], plans: list[str]) -> int:
    """One line a family; returns the exact plans."""
    total: Counter[tuple[str, str]] = Counter()
    right: Counter[tuple[str, str]] = Counter()
    for example, plan in zip(examples, plans, strict=True):
        key = example.skills.kind, example.pair.family
        total[key] += 1
        right[key] += plan == example.pair.plan
    print(f"{'robot':8}{'family':16}{'exact':>7}{'of':>6}{'share':>9}")
    for kind, family in sorted(total):
        exact, count = right[kind, family], total[kind, family]
        print(f"{kind:8}{family:16}{exact:7}{count:6}{exact / count:9.1%}")
    exact, count = right.total(), total.total()
    print(f"{'all':24}{exact:7}{count:6}{exact / count:9.2%}")
    return exact


def main() -> int:
    settings = options()
    from timely_llm.engine.config import EngineConfig
    from timely_llm.engine.factory import build

    started = time.monotonic()
    skills = dataset.load_skills()
    template = PromptTemplate.resolve(settings.prompt_template, settings.model)
    examples = dataset.held_out(skills, settings.count, settings.seed)
    fresh = dataset.held_out(skills, settings.new_names, settings.seed, new_names=True)
    print_split(examples)
    tasks = [Example(pair, skills[kind]) for kind, pair in dataset.published()]
    asked = tasks + examples + fresh
    engine = build(EngineConfig(settings.model, settings.batch))
    plans = generate(engine, template, asked)
    info = engine.info
    engine.close()
    wrong = [
        {"family": e.pair.family, "kind": e.skills.kind, "instruction": e.pair.instruction,
         "scene": e.pair.scene, "wanted": e.pair.plan, "given": plan}
        for e, plan in zip(asked, plans, strict=True) if plan != e.pair.plan
    ]  # fmt: skip
    illegal = sum(bool(problem(plan, e)) for e, plan in zip(asked, plans, strict=True))
    published = count_exact(tasks, plans[: len(tasks)])
    exact = print_scores(examples, plans[len(tasks) : len(tasks) + len(examples)])
    new = count_exact(fresh, plans[len(tasks) + len(examples) :])
    for item in wrong[: settings.wrong]:
        print(f"\n  {item['kind']}, {item['family']}: {item['instruction']}\n"
              f"  wanted {item['wanted']}\n  given  {item['given']}")  # fmt: skip
    print(f"\nplans that the checker refuses: {illegal}")
    print(f"published tasks: {published}/{len(tasks)} exact")
    print(f"names never trained: {new}/{len(fresh)} = {new / max(1, len(fresh)):.2%} exact")
    print(f"held out: {exact}/{len(examples)} = {exact / len(examples):.2%} exact "
          f"(target {TARGET:.0%}); {info.backend} {info.version}, under the grammar, "
          f"{time.monotonic() - started:.0f} s")  # fmt: skip
    if settings.json:
        scores = {"exact": exact, "count": len(examples), "published": published,
                  "new_names": new, "new_names_count": len(fresh), "illegal": illegal,
                  "wrong": wrong}  # fmt: skip
        settings.json.write_text(json.dumps(scores, indent=1) + "\n")
    return 0 if exact >= TARGET * len(examples) and published == len(tasks) else 1


if __name__ == "__main__":
    sys.exit(main())
