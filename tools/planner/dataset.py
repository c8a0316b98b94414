"""The mix of families by robot kind, refusals of missing skills, and the held-out set."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

import yaml

from timely_llm.language.loader import load_skill_set
from timely_llm.language.skills import SkillSet
from tools.planner import amounts, arm, drone, languages, motion, phrases, rover, tasks
from tools.planner.draw import INVENTED, Draw, Exhausted, Pair
from tools.planner.phrases import ROLLING

ROOT = Path(__file__).resolve().parents[2]
KINDS = ("tello", "indy7", "rover")
HELD_OUT_SEED = 20_251


@dataclass(frozen=True, slots=True)
class Family:
    """A kind of task: its weight among what people ask, and how much more it is practised."""

    make: Callable[[Draw], Pair]
    weight: float
    practice: float = 1.0


ARM_STEPS = replace(tasks.ARM, steps=(*tasks.ARM.steps, (arm.over, 3), (arm.take, 3), (arm.put, 2)))
ARM_LOOPS = replace(tasks.ARM, steps=(*tasks.ARM.steps, (arm.over, 5)))
_FLYING_LIMITS = (phrases.bad_move, phrases.bad_move, phrases.bad_turn, phrases.bad_wait)
_ROLLING_LIMITS = (
    partial(phrases.bad_move, body=ROLLING),
    partial(phrases.bad_move, body=ROLLING),
    partial(phrases.bad_turn, body=ROLLING),
)
_DRONE = (
    Family(tasks.single("move", phrases.move), 4),
    Family(tasks.single("turn", phrases.turn), 2),
    Family(tasks.single("far move", phrases.far_move), 0.8),
    Family(tasks.single("wait", phrases.wait), 0.5),
    Family(tasks.single("picture", phrases.picture), 0.5),
    Family(tasks.single("say", phrases.say), 0.5),
    Family(partial(tasks.steps, robot=tasks.DRONE), 4.5),
    Family(motion.there_and_back, 2),
    Family(partial(tasks.correction, robot=tasks.DRONE), 0.8),
    Family(motion.changed_amount, 0.6),
    Family(partial(tasks.find, robot=tasks.DRONE), 2),
    Family(partial(tasks.go_to, robot=tasks.DRONE), 1.5),
    Family(drone.search, 2.5),
    Family(drone.tour, 2.5),
    Family(tasks.question, 1.5, 1.2),
    Family(drone.look_and_tell, 0.7),
    Family(partial(tasks.condition, robot=tasks.DRONE), 3),
    Family(drone.both, 1),
    Family(drone.comparison, 1.5),
    Family(partial(tasks.loop, robot=tasks.DRONE), 2),
    Family(drone.figure, 0.8),
    Family(drone.photos, 1.2),
    Family(motion.bob, 0.8),
    Family(motion.stairs, 0.4),
    Family(motion.polygon, 0.6),
    Family(drone.move_and_look, 1.5),
    Family(drone.measure, 0.6),
    Family(drone.open_question, 0.5),
    Family(drone.count, 0.7),
    Family(drone.colour, 0.5),
    Family(drone.compared, 0.5),
    Family(drone.abstract, 0.4),
    Family(drone.replan, 2, 1.8),
    Family(drone.retry, 1),
    Family(languages.steps, 2),
    Family(languages.things, 0.7),
    Family(partial(tasks.refusal, verbs=drone.VERBS), 2),
    Family(partial(tasks.out_of_limits, makers=_FLYING_LIMITS, then=tasks.DRONE), 1.8),
)  # fmt: skip
_ARM = (
    Family(arm.place, 5),
    Family(arm.place_all, 1.2),
    Family(arm.tower, 0.5),
    Family(arm.hold, 1.3),
    Family(arm.pick, 1),
    Family(arm.release, 0.3),
    Family(arm.pick_if, 0.6),
    Family(arm.steps, 1.5),
    Family(arm.replan, 0.5),
    Family(arm.retry, 0.4),
    Family(partial(tasks.find, robot=tasks.ARM), 0.7),
    Family(partial(tasks.go_to, robot=tasks.ARM), 1.5),
    Family(partial(drone.search, robot=ARM_STEPS), 0.8),
    Family(tasks.question, 0.8, 1.2),
    Family(drone.count, 0.3),
    Family(drone.colour, 0.3),
    Family(partial(tasks.condition, robot=ARM_STEPS), 2),
    Family(partial(tasks.loop, robot=ARM_LOOPS), 0.8),
    Family(partial(tasks.steps, robot=tasks.ARM), 0.3),
    Family(partial(tasks.correction, robot=ARM_STEPS), 0.3),
    Family(tasks.single("wait", phrases.wait), 0.2),
    Family(tasks.single("say", phrases.say), 0.3),
    Family(languages.places, 1.3),
    Family(partial(tasks.refusal, verbs=arm.VERBS), 1.2),
    Family(partial(tasks.out_of_limits, makers=(phrases.bad_wait,), then=ARM_STEPS), 0.3),
)
_ROVER = (
    Family(tasks.single("move", partial(phrases.move, body=ROLLING)), 4),
    Family(tasks.single("turn", partial(phrases.turn, body=ROLLING)), 2.5),
    Family(tasks.single("far move", partial(phrases.far_move, body=ROLLING)), 0.8),
    Family(partial(tasks.steps, robot=tasks.ROVER), 4),
    Family(partial(motion.there_and_back, body=ROLLING), 1),
    Family(partial(tasks.correction, robot=tasks.ROVER), 0.6),
    Family(partial(motion.changed_amount, body=ROLLING), 0.5),
    Family(partial(tasks.loop, robot=tasks.ROVER), 1.2),
    Family(rover.square, 1.5),
    Family(partial(motion.bob, body=ROLLING), 0.8),
    Family(partial(motion.polygon, body=ROLLING), 0.8),
    Family(partial(languages.steps, body=ROLLING), 1.5),
    Family(partial(tasks.refusal, verbs=rover.VERBS, body=ROLLING), 1.5),
    Family(partial(tasks.out_of_limits, makers=_ROLLING_LIMITS, then=tasks.ROVER), 1.8),
)
# What people ask of another kind; skills that are missing make it a refusal.
_ASKED_OF_DRONE = (Family(arm.place, 1), Family(arm.pick, 1), Family(arm.hold, 0.5))
_ASKED_OF_ARM = (
    Family(tasks.single("move", phrases.move), 2),
    Family(tasks.single("turn", phrases.turn), 2),
    Family(tasks.single("picture", phrases.picture), 1.5),
    Family(partial(tasks.steps, robot=tasks.DRONE), 1),
)
_ASKED_OF_ROVER = (
    Family(tasks.single("picture", phrases.picture), 2),
    Family(tasks.single("say", phrases.say), 1.5),
    Family(tasks.single("wait", phrases.wait), 0.5),
    Family(tasks.single("move", partial(phrases.move, skill="mu")), 0.5),
    Family(tasks.single("move", partial(phrases.move, skill="ml")), 0.5),
    Family(partial(tasks.go_to, robot=tasks.DRONE), 1),
    Family(partial(tasks.find, robot=tasks.DRONE), 1),
    Family(partial(tasks.condition, robot=tasks.DRONE), 0.7),
    Family(tasks.question, 0.7),
    Family(arm.pick, 0.7),
    Family(arm.place, 0.5),
)
_FAMILIES = {
    "tello": (_DRONE, _ASKED_OF_DRONE),
    "indy7": (_ARM, _ASKED_OF_ARM),
    "rover": (_ROVER, _ASKED_OF_ROVER),
}
_FOREIGN = {"tello": 0.04, "indy7": 0.06, "rover": 0.15}

CANNOT = {
    "pi": "pick things up", "dr": "put things down",
    "mf": "move forward", "mb": "move back", "ml": "move left", "mr": "move right",
    "mu": "move up", "md": "move down", "tc": "turn right", "tu": "turn left",
    "g": "go to objects", "gt": "go to objects", "s": "search", "sa": "search", "sc": "scan",
    "d": "wait", "p": "answer questions", "l": "speak", "sq": "drive squares", "iv": "see objects",
    "tp": "take pictures",
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
    plan = f"refuse('I cannot {CANNOT[first]}')"
    return replace(pair, family="missing skill", plan=plan)


def draw_pair(kind: str, names: Sequence[str], draw: Draw) -> Pair:
    """One pair for a robot of this kind with these skills."""
    own, foreign = _FAMILIES[kind]
    while True:
        chosen = foreign if draw.chance(_FOREIGN[kind]) else own
        weights = [f.weight * (1 if draw.held_out else f.practice) for f in chosen]
        draw.start()
        try:
            pair = fit(draw.rng.choices(chosen, weights)[0].make(draw), names)
        except Exhausted:
            continue
        if letters(pair.instruction) not in judged():
            return pair


def letters(instruction: str) -> str:
    """Its letters alone: no tag, no numbers in digits or in words, no signs, no case."""
    text = re.sub(r"^\[[A-Z]\] ", "", instruction).lower()
    words = re.findall(r"[^\W\d_]+", text)
    return "".join(word for word in words if word not in amounts.NUMBERS)


@cache
def judged() -> frozenset[str]:
    """What planners are measured by, in letters: it is never drawn."""
    files = sorted((ROOT / "config/instructions").glob("*.yaml"))
    rows = [row for file in files for row in yaml.safe_load(file.read_text())["instructions"]]
    return frozenset(letters(row["instruction"]) for row in rows)


def vary(skills: SkillSet, rng: random.Random, most: float = 1 / 3) -> SkillSet:
    """The same kind with up to this share of skills missing, half of the time in another order."""
    chosen = list(skills.skills)
    for skill in rng.sample(chosen, rng.randint(0, max(1, int(most * len(chosen))))):
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
            chosen = vary(skills[kind], rng) if rng.random() < varied else skills[kind]
            pairs = [draw_pair(kind, chosen.names, draw) for _ in range(size)]
            if chosen is skills[kind]:
                own = [pair for anchor, pair in anchors if anchor == kind]
                shown = min(len(own), len(own) // 4 + 2, size)
                pairs[:shown] = rng.sample(own, shown)
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
        kind = rng.choices(KINDS, (0.53, 0.29, 0.18))[0]
        chosen = rng.choice(sets[kind])
        pair = draw_pair(kind, chosen.names, draw)
        text = pair.instruction.lower()
        if text in seen or (new_names and not any(name in pair.plan for name in draw.objects)):
            continue
        seen.add(text)
        examples.append(Example(pair, chosen))
    return examples
