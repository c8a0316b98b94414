"""Random choices behind the split: which combinations are for training, which are held out.

A combination is a phrasing (a text with a slot) and the value that fills the slot. A hash of both
decides its side, so the split needs no list, and each side can be drawn without end. Some nouns are
never trained in any phrasing; with made-up words they are the names of the set for new names.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from tools.planner import chatter, words

HELD_OUT_SHARE = 8  # one combination in so many is held out
HELD_OUT_NOUNS = 12  # one noun in so many is never trained
INVENTED = 0.3  # share of made-up names in training, so that copying does not lean on known words
_TRIES = 60

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Pair:
    """A goal's words and the plan they ask for. ``keys`` are its (phrasing, value) combinations."""

    family: str
    instruction: str
    scene: str
    plan: str
    keys: tuple[tuple[str, str], ...] = ()

    @property
    def needs(self) -> tuple[str, ...]:
        """Names of the skills that the plan calls, in order."""
        called = re.findall(r"\b([a-z]+)\(", _without_strings(self.plan))
        return tuple(name for name in dict.fromkeys(called) if name != "refuse")


class Exhausted(Exception):
    """No value on the wanted side was found for this phrasing: draw another one."""


def _without_strings(plan: str) -> str:
    return re.sub(r"'[^']*'", "''", plan)


def _bucket(text: str, buckets: int) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=4).digest()) % buckets


def is_held_out(phrasing: str, value: str) -> bool:
    """The side of a combination."""
    return _bucket(f"{phrasing}|{value}", HELD_OUT_SHARE) == 0


def has_held_out_noun(name: str) -> bool:
    """Whether a word of the name is never trained."""
    return any(_bucket(f"noun|{word}", HELD_OUT_NOUNS) == 0 for word in name.split())


_SOURCES = [word for word in words.THINGS if not has_held_out_noun(word)]
_KNOWN = {*_SOURCES, *words.ADJECTIVES, *" ".join(words.COMPOUND).split()}


def is_new(name: str) -> bool:
    """Whether a word of the name is never trained as an object's name."""
    return has_held_out_noun(name) or not _KNOWN.issuperset(name.split())


def _new_word(rng: random.Random) -> str:
    return words.made_up(rng) if rng.random() < 0.35 else words.spliced(rng, _SOURCES)


class Draw:
    """Draws from one side of the split and keeps the combinations of the pair at hand.

    ``invented`` is the share of made-up names. With ``new_names`` every object of a task has a name
    that is never trained: a held-out noun or a made-up one.
    """

    def __init__(
        self,
        rng: random.Random,
        held_out: bool = False,
        new_names: bool = False,
        invented: float = 0.0,
    ) -> None:
        self.rng = rng
        self.held_out = held_out
        self.new_names = new_names
        self.invented = invented
        # In training most made-up words are spliced from trained ones, so that no piece of a word
        # tells which one follows it.
        self.invent = words.made_up if held_out else _new_word
        self.start()

    def start(self) -> None:
        """Forget the pair before."""
        self.keys: list[tuple[str, str]] = []
        self.objects: list[str] = []

    def pick(self, items: Sequence[Item]) -> Item:
        return self.rng.choice(items)

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def value(self, phrasing: str, choose: Callable[[], Item]) -> Item:
        """A value for the slot of ``phrasing`` that is on the wanted side."""
        for _ in range(_TRIES):
            value = choose()
            if is_held_out(phrasing, str(value)) == self.held_out:
                self.keys.append((phrasing, str(value)))
                return value
        raise Exhausted(phrasing)

    def thing(self, phrasing: str, but: Sequence[str] = (), longest: int = 32) -> str:
        """An object's name for ``phrasing``, none of ``but``."""

        def choose() -> str:
            while True:
                name = words.thing(self.rng, self.invented, self.invent)
                if name in but or len(name) > longest:
                    continue
                if is_new(name) if self.new_names else not has_held_out_noun(name):
                    return name

        name = self.value(phrasing, choose)
        self.objects.append(name)
        return name

    def place(self) -> str:
        """A usual place."""
        return self._trained(lambda: self.pick(words.PLACES))

    def other_thing(self) -> str:
        """An object's name that is no slot's value: of scenes, of what a refusal is about."""
        return self._trained(lambda: words.thing(self.rng, self.invented / 2, self.invent))

    def _trained(self, choose: Callable[[], str]) -> str:
        while has_held_out_noun(name := choose()):
            pass
        return name

    def named(self, name: str) -> str:
        """The name with an article before it, or none before a plural."""
        if name.endswith("s") and not name.endswith("ss") and self.chance(0.4):
            return self.pick(("", "some ", "my ", "the ")) + name
        return f"{words.article(self.rng, name)} {name}"


def scene_of(draw: Draw, names: Sequence[str]) -> str:
    """A scene with these objects as a robot reports it: name, centre and size as view shares."""
    parts = []
    for index, name in enumerate(names):
        number = "" if draw.chance(0.25) else f"_{index + 1 if draw.chance(0.3) else 1}"
        x, y, width, height = (draw.rng.uniform(low, 0.95) for low in (0.05, 0.05, 0.1, 0.1))
        parts.append(
            f"{name.replace(' ', '_')}{number} "
            f"x:{x:.2f} y:{y:.2f} width:{width:.2f} height:{height:.2f}"
        )
    return f"[{', '.join(parts)}]"


def numbered_scene(draw: Draw, names: Sequence[str]) -> str:
    """A scene in which things of one name are numbered, in any order."""
    seen: dict[str, int] = {}
    numbered = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        numbered.append(f"{name} {seen[name]}" if names.count(name) > 1 else name)
    draw.rng.shuffle(numbered)
    parts = [scene_of(draw, [name])[1:-1] for name in numbered]
    plain = [re.sub(r"_(\d+)_\d+ ", r"_\1 ", part) for part in parts]
    return f"[{', '.join(plain)}]"


def random_scene(draw: Draw, but: Sequence[str] = (), place: str = "") -> str:
    """A scene of none to three objects that are not in the task; ``place`` may be one of them."""
    names = [place] if place and draw.chance(0.5) else []
    for _ in range(draw.pick((0, 0, 0, 0, 1, 1, 2, 3))):
        name = draw.other_thing()
        if not any(name in other or other in name for other in (*but, *names)):
            names.append(name)
    draw.rng.shuffle(names)
    return scene_of(draw, names)


def finish(draw: Draw, family: str, core: str, plan: str, scene: str, tag: str = "A") -> Pair:
    """Wrap the core in a request, less so for the tags Q and E, and check the side. The tag L
    (another language) is never written.

    A core without slots is a value itself, and its wrapping the phrasing.
    """
    wrap = chatter.wrapping(draw.rng, core, tag)
    if not draw.keys:
        wraps = [wrap, *(chatter.wrapping(draw.rng, core, tag) for _ in range(_TRIES))]
        wrap = next((each for each in wraps if is_held_out(each, core) == draw.held_out), "")
        if not wrap:
            raise Exhausted(core)
        draw.keys.append((wrap, core))
    text = wrap.format(core).strip()
    if tag != "E":
        text = chatter.misspelt(draw.rng, text, _kept(draw, plan))
    if draw.chance(0.6):
        text = text[0].upper() + text[1:]
    if tag != "L" and draw.chance(0.4):
        text = f"[{tag}] {text}"
    return Pair(family, text, scene, plan, tuple(draw.keys))


def _kept(draw: Draw, plan: str) -> set[str]:
    """Words that are never mistyped: names and texts."""
    texts = [value for _, value in draw.keys] + re.findall(r"'([^']*)'", plan)
    return {word.strip(".?!,").lower() for text in texts for word in text.split()}
