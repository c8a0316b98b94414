"""The mix of families by robot kind, refusals of missing skills, and the held-out set."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from timely_llm.language.loader import load_skill_set
from timely_llm.language.skills import SkillSet
from tools.planner import arm, drone, phrases, tasks
from tools.planner.draw import INVENTED, Draw, Exhausted, Pair

ROOT = Path(__file__).resolve().parents[2]
KINDS = ("tello", "indy7")
ALWAYS = ("l",)  # refusals need it
HELD_OUT_SEED = 20_251


@dataclass(frozen=True, slots=True)
class Family:
    """A kind of task: its weight among what people ask, and how much more it is practised."""

    make: Callable[[Draw], Pair]
    weight: float
    practice: float = 1.0


_DRONE = (
    Family(tasks.single("move", phrases.move), 2, 0.8),
    Family(tasks.single("turn", phrases.turn), 1.5, 0.6),
    Family(tasks.single("wait", phrases.wait), 0.7, 0.6),
    Family(tasks.single("picture", phrases.picture), 0.5, 0.6),
    Family(tasks.single("say", phrases.say), 0.7),
    Family(partial(tasks.steps, robot=tasks.DRONE), 3),
    Family(partial(tasks.find, robot=tasks.DRONE), 2, 0.7),
    Family(partial(tasks.go_to, robot=tasks.DRONE), 1.5, 1.5),
    Family(tasks.question, 1.5, 1.2),
    Family(partial(tasks.condition, robot=tasks.DRONE), 1.5),
    Family(drone.comparison, 1),
    Family(partial(tasks.loop, robot=tasks.DRONE), 1.5),
    Family(drone.figure, 1, 0.7),
    Family(drone.move_and_look, 2),
    Family(drone.measure, 0.7),
    Family(drone.open_question, 0.8),
    Family(drone.abstract, 0.5),
    Family(drone.replan, 4.5, 3.5),
    Family(partial(tasks.refusal, verbs=drone.VERBS), 1.2),
    Family(partial(tasks.out_of_limits,
                   makers=(phrases.bad_move, phrases.bad_turn, phrases.bad_wait)), 1.2, 1.5),
)  # fmt: skip
_ARM = (
    Family(arm.place, 5, 1),
    Family(arm.pick, 0.7),
    Family(arm.release, 0.4),
    Family(arm.pick_if, 0.6),
    Family(arm.replan, 1),
    Family(partial(tasks.find, robot=tasks.ARM), 1),
    Family(partial(tasks.go_to, robot=tasks.ARM), 0.8, 1.5),
    Family(tasks.question, 0.7, 1.2),
    Family(partial(tasks.condition, robot=tasks.ARM), 0.8),
    Family(partial(tasks.loop, robot=tasks.ARM), 0.4),
    Family(partial(tasks.steps, robot=tasks.ARM), 0.5),
    Family(tasks.single("wait", phrases.wait), 0.2),
    Family(tasks.single("say", phrases.say), 0.3),
    Family(partial(tasks.refusal, verbs=arm.VERBS), 1),
    Family(partial(tasks.out_of_limits, makers=(phrases.bad_wait,)), 0.2),
)
# What people ask of the other kind; skills that are missing make it a refusal.
_ASKED_OF_DRONE = (Family(arm.place, 1), Family(arm.pick, 1))
_ASKED_OF_ARM = (
    Family(tasks.single("move", phrases.move), 2),
    Family(tasks.single("turn", phrases.turn), 2),
    Family(tasks.single("picture", phrases.picture), 1),
    Family(partial(tasks.steps, robot=tasks.DRONE), 1),
)
_FAMILIES = {"tello": (_DRONE, _ASKED_OF_DRONE), "indy7": (_ARM, _ASKED_OF_ARM)}
_FOREIGN_SHARE = 0.04

CANNOT = {
    "pi": "pick things up", "dr": "put things down",
    "mf": "move forward", "mb": "move back", "ml": "move left", "mr": "move right",
    "mu": "move up", "md": "move down", "tc": "turn right", "tu": "turn left",
    "g": "go to objects", "gt": "go to objects", "s": "search", "sa": "search", "sc": "scan",
    "d": "wait", "p": "answer questions", "iv": "see objects", "tp": "take pictures",
    "ox": "measure", "oy": "measure", "ow": "measure", "oh": "measure", "od": "measure",
}  # fmt: skip
_FIRST = ("pi", "dr")  # named before other missing skills


@dataclass(frozen=True, slots=True)
class Example:
    """A pair as one robot gets it: with its skills, which may change the plan to a refusal."""

    pair: Pair
    skills: SkillSet


def load_skills() -> dict[str, SkillSet]:
    return {kind: load_skill_set(ROOT / f"config/skills/{kind}.yaml") for kind in KINDS}


def published(path: Path | None = None) -> list[tuple[str, Pair]]:
    """The eleven published tasks as (kind, pair)."""
    path = path or ROOT / "timely_llm/data/lrtrace_tasks.json"
    kinds = {"drone": "tello", "arm": "indy7"}
    return [
        (kinds[task["robot"]], Pair("published", task["task"], task["scene"], task["plan"]))
        for task in json.loads(path.read_text())["tasks"]
    ]


def fit(pair: Pair, names: Sequence[str]) -> Pair:
    """The pair for a robot with these skills: a refusal if its plan needs one that is missing."""
    missing = [name for name in pair.needs if name not in names]
    if not missing:
        return pair
    first = next((name for name in _FIRST if name in missing), missing[0])
    plan = f"l('I cannot {CANNOT[first]}');->False"
    return replace(pair, family="missing skill", plan=plan)


def draw_pair(kind: str, names: Sequence[str], draw: Draw) -> Pair:
    """One pair for a robot of this kind with these skills."""
    own, foreign = _FAMILIES[kind]
    while True:
        chosen = foreign if draw.chance(_FOREIGN_SHARE) else own
        weights = [f.weight * (1 if draw.held_out else f.practice) for f in chosen]
        draw.start()
        try:
            return fit(draw.rng.choices(chosen, weights)[0].make(draw), names)
        except Exhausted:
            continue


def vary(skills: SkillSet, rng: random.Random, most: float = 1 / 3) -> SkillSet:
    """The same kind with up to this share of skills missing, half of the time in another order."""
    chosen = list(skills.skills)
    for skill in rng.sample(chosen, rng.randint(0, max(1, int(most * len(chosen))))):
        if skill.name not in ALWAYS:
            chosen.remove(skill)
    if rng.random() < 0.5:
        rng.shuffle(chosen)
    return replace(skills, skills=tuple(chosen))


def batches(
    skills: dict[str, SkillSet],
    rng: random.Random,
    sizes: dict[str, int],
    varied: float,
    invented: float = INVENTED,
) -> Iterator[list[tuple[SkillSet, list[Pair]]]]:
    """Training batches without end: for each kind a skill set and pairs for it."""
    draw = Draw(rng, invented=invented)
    anchors = published()
    while True:
        batch = []
        for kind, size in sizes.items():
            chosen = vary(skills[kind], rng, 0.5) if rng.random() < varied else skills[kind]
            pairs = [draw_pair(kind, chosen.names, draw) for _ in range(size)]
            if chosen is skills[kind]:
                own = [pair for anchor, pair in anchors if anchor == kind]
                pairs[: len(own) // 4 + 1] = rng.sample(own, len(own) // 4 + 1)
            batch.append((chosen, pairs))
        yield batch


def held_out(
    skills: dict[str, SkillSet], count: int, seed: int = HELD_OUT_SEED, new_names: bool = False
) -> list[Example]:
    """``count`` different instructions of the held-out side; one in six for a varied skill set.

    Their combinations of phrasing and value were never trained; with ``new_names`` neither was any
    of the objects' names, and every plan has one.
    """
    rng = random.Random(seed)
    draw = Draw(rng, held_out=True, new_names=new_names, invented=0.5 if new_names else 0.0)
    sets = {kind: [skills[kind]] * 15 + [vary(skills[kind], rng) for _ in range(3)]
            for kind in KINDS}  # fmt: skip
    seen: set[str] = set()
    examples: list[Example] = []
    while len(examples) < count:
        kind = "tello" if rng.random() < 0.62 else "indy7"
        chosen = rng.choice(sets[kind])
        pair = draw_pair(kind, chosen.names, draw)
        text = pair.instruction.lower()
        if text in seen or (new_names and not any(name in pair.plan for name in draw.objects)):
            continue
        seen.add(text)
        examples.append(Example(pair, chosen))
    return examples
