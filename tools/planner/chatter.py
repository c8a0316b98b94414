"""What people say around what they want, and how they mistype it. No part of a plan's meaning."""

from __future__ import annotations

import random
from collections.abc import Collection

_REQUESTS = (
    "{}", "{}", "{}", "{}.", "{}.", "please {}", "please {}.", "{} please", "could you {}?",
    "can you {}?", "i want you to {}", "i need you to {}.", "robot, {}", "hey, {}", "now {}",
    "{} now", "would you {}?", "you should {}.", "your task: {}", "{}!", "kindly {}",
    "i would like you to {}", "hello, {}", "ok, {}", "next, {}",
)  # fmt: skip
_BEFORE = (
    "mate, ", "ok so ", "um, ", "uh ", "hi there, ", "hello! ", "hey robot, ", "alright, ",
    "right then, ",
    "when you get a chance, ", "if you don't mind, ", "if it is no trouble, ", "be a dear and ",
    "could you please ", "can u ", "could u pls ", "pls ", "plz ", "let's see... ",
    "good morning. ",
    "good evening! ", "dear robot, ", "listen, ", "quick one: ", "whenever you are ready, ",
    "i was wondering if you could ", "do me a favour and ", "go ahead and ", "just ", "so, ",
    "would you be so kind as to ", "might i ask you to ", "i'd be grateful if you could ",
    "buddy, ", "well, ", "yo, ", "hiya, ", "excuse me, ", "i'd love it if you could ", "time to ",
    "ok! ", "oh, and ", "see if you can ", "i think you should ", "my friend, ", "hmm, ",
    "first off, ",
    "your next job: ", "we need you to ", "all right: ", "i wonder, could you possibly ",
    "ok listen, it has been a long day. ", "sorry to bother you, ", "be so good as to ",
    "you know what, ", "it's me again, ", "the boss says: ", "i'm in a hurry, so ", "like, ",
)  # fmt: skip
_AFTER = (
    ", please", " pls", " plz", ", thanks", ", thanks!", ". thanks a lot.", " thx", ", would you",
    ", ok?",
    ", if you don't mind", ", if you please", ", that's all", ". that's it.", ", mate", ", buddy",
    " when you are ready", " when you have time", ", cheers", ". ta!", ". thank you very much.",
    "!!",
    " if you can", " for me", " for us", ", will you", ", could you?", ". nothing else.", " asap",
    " so that we can go on", " so i get a better view", ", because i asked nicely", ", go",
    " to make some room", " for the demo", ", it won't take long", ". and be careful.", ", ok thx",
    " right away", ", quickly", ", gently", " whenever it suits you", ", won't you",
    ". yours, anna",
    ". kind regards, tom", ", no hurry", ". and that is all i want.", ", exactly that",
    ", carefully",
    " to please the guests", " before lunch", " and don't crash", " as soon as possible",
    ", got it?",
)  # fmt: skip
_SENTENCES_AFTER = (
    " thanks!",
    " thank you.",
    " please.",
    " ok?",
    " cheers.",
    " just tell me.",
    " pls",
)
_CHATTY = 0.45  # share of requests with more words than a plain one has
_TYPED = 0.07  # share of instructions with typing errors
_SLIPS = {"please": "plese", "forward": "foward", "right": "rigth", "the": "teh", "and": "adn",
          "take": "tkae", "picture": "pcture", "photo": "foto", "ahead": "ahed", "back": "bakc",
          "degrees": "degress", "turn": "trun", "then": "tehn", "you": "yuo", "left": "lefft",
          "with": "wiht", "from": "form", "just": "jsut", "wait": "wiat", "down": "donw",
          "put": "putt", "pick": "pik", "meters": "metrs", "metres": "meteres", "find": "fnid",
          "look": "lok", "to": "ot", "you see": "u see", "grab": "grap",
          "seconds": "secnods"}  # fmt: skip


def wrapping(rng: random.Random, core: str, tag: str) -> str:
    """A text with a slot for what is wanted."""
    if tag == "E":
        return "{}"
    ended = core[-1] in ".?!"
    if rng.random() > _CHATTY:
        return "{}" if ended or tag != "A" else rng.choice(_REQUESTS)
    before = rng.choice(_BEFORE) if rng.random() < 0.6 else ""
    after = "" if before and rng.random() < 0.5 else rng.choice(_AFTER)
    if ended:
        after = rng.choice(("", "", *_SENTENCES_AFTER))
    return f"{before if tag == 'A' else ''}{{}}{after}"


def misspelt(rng: random.Random, text: str, kept: Collection[str]) -> str:
    """The text, now and then with one to three words mistyped, but none of those that are kept."""
    if rng.random() > _TYPED:
        return text
    parts = text.split(" ")
    places = [i for i, part in enumerate(parts) if part.isalpha() and part.lower() not in kept]
    for place in rng.sample(places, min(len(places), rng.randint(1, 4))):
        parts[place] = _slip(rng, parts[place])
    return " ".join(parts)


def _slip(rng: random.Random, word: str) -> str:
    known = _SLIPS.get(word.lower())
    if known and rng.random() < 0.6:
        return known
    if len(word) < 4:
        return word
    place = rng.randint(1, len(word) - 2)
    kind = rng.random()
    if kind < 0.5:
        return word[:place] + word[place + 1] + word[place] + word[place + 2 :]
    return word[:place] + (word[place + 1 :] if kind < 0.8 else word[place] + word[place:])
