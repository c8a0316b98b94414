"""For tests: robot kinds, the published plans, and generators of plans. No tests here."""

import json
from pathlib import Path

from hypothesis import strategies as st

from timely_llm.language.loader import load_skill_set, read_skill_set

ROOT = Path(__file__).parents[2]
DATA = ROOT / "timely_llm" / "data"
TELLO = load_skill_set(ROOT / "config" / "skills" / "tello.yaml")
INDY7 = load_skill_set(ROOT / "config" / "skills" / "indy7.yaml")

ROVER_YAML = """\
kind: rover
description: a small wheeled robot with a sprayer
bounds: {max_nesting: 2, max_statements: 8, max_string: 20, max_loop: 5, max_plan_chars: 400,
         max_variables: 3, max_number: 50, max_steps: 40, max_time: 60, max_travel: 20}
skills:
  - name: dv
    long_name: drive
    description: drive forward, backward if negative
    arguments:
      - {name: distance, type: float, unit: m, minimum: -2.5, maximum: 12.3}
    duration: {constant: 1.5}
  - name: st
    long_name: steer
    description: set the steering angle
    arguments:
      - {name: angle, type: int, unit: deg, minimum: -35, maximum: 35}
      - {name: speed, type: float, unit: deg/s, minimum: 0.5, maximum: 1}
    duration: {uniform: [0.2, 0.9]}
  - name: sp
    long_name: spray
    description: spray a plant by its tag
    arguments:
      - {name: tag, type: str, pattern: "[A-C][0-9]{1,2}(x|yy)?"}
    returns: bool
    duration: {choice: {step: 0.4, count: 3}}
  - name: bt
    long_name: battery
    description: charge of the battery in percent
    returns: int
    duration: {constant: 0.002}
  - name: am
    long_name: ask_model
    description: ask the language model
    arguments:
      - {name: question, type: str, maximum: 20}
    returns: str
    role: probe
    duration: {constant: 0.04}
  - name: np
    long_name: new_plan
    description: ask for a new plan
    role: replan
    duration: {constant: 0}
"""
ROVER = read_skill_set(ROVER_YAML, "rover.yaml")
KINDS = {"tello": TELLO, "indy7": INDY7, "rover": ROVER}
BY_ROBOT = {"drone": TELLO, "arm": INDY7}

TASKS = json.loads((DATA / "lrtrace_tasks.json").read_text())
PUBLISHED = [(task["plan"], BY_ROBOT[task["robot"]]) for task in TASKS["tasks"]]
SEGMENTS = [
    (entry["plan"], entry["segments"])
    for entry in json.loads((DATA / "lrtrace_segments.json").read_text())["plans"]
]


def split(text: str, cuts: list[int]) -> list[str]:
    """``text`` in pieces, cut at ``cuts`` (taken modulo its length)."""
    places = sorted(cut % (len(text) + 1) for cut in cuts)
    return [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True)]


CUTS = st.lists(st.integers(0, 10_000), max_size=12)


# ---- plans as trees: what is written and what it means, apart from the code under test -----------
#
# Statements: ("call", name, arguments), ("set", variable, chain), ("return", chain),
# ("if", terms, joints, block), ("loop", passes, block). A chain is [operand, symbol, operand, ...],
# a term (chain, comparison or "", chain). Operands: ("value", v), ("variable", n), ("minus",
# operand), ("call", name, arguments); arguments are chains.

_WORDS = st.sampled_from(["cat", "red box", "a;b}{", "(mf(", "é", '"', "x" * 32])


def _numbers(low: int, high: int):
    return st.integers(low, high) | st.integers(low * 10, high * 10).map(lambda tenths: tenths / 10)


@st.composite
def _call(draw, depth: int, skills: list) -> tuple:
    skill = draw(st.sampled_from(skills))
    return ("call", skill.name, [draw(_argument(depth, argument)) for argument in skill.arguments])


@st.composite
def _argument(draw, depth: int, argument) -> list:
    """Mostly a literal within the limits, sometimes whatever an expression gives."""
    if depth and draw(st.integers(0, 3)) == 0:
        chain = draw(_chain(depth - 1))
        literal = chain[0][0] == "value" or (chain[0][0] == "minus" and chain[0][1][0] == "value")
        if not literal or len(chain) > 1:
            return chain
    if argument.type == "str":
        return [("value", draw(_WORDS))]
    low, high = int(argument.minimum + 0.9), int(argument.maximum)
    numbers = st.integers(low, high) if argument.type == "int" else _numbers(low, high)
    return [("value", draw(numbers))]


@st.composite
def _operand(draw, depth: int) -> tuple:
    kind = draw(st.sampled_from(["value", "value", "variable", "minus", "call"]))
    if kind == "variable":
        return (kind, draw(st.integers(1, 3)))
    if kind == "minus" and depth:
        return (kind, draw(_operand(depth - 1).filter(lambda operand: operand[0] != "minus")))
    if kind == "call" and depth:
        return draw(_call(depth - 1, [s for s in TELLO.skills if s.returns != "none"]))
    return ("value", draw(st.booleans() | _numbers(0, 300) | _WORDS))


@st.composite
def _chain(draw, depth: int = 2) -> list:
    chain = [draw(_operand(depth))]
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 2]))):
        chain += [draw(st.sampled_from("+-*/")), draw(_operand(depth))]
    return chain


@st.composite
def _block(draw, depth: int, budget: list) -> list:
    block = [draw(_statement(depth, budget))]
    while budget[0] > 0 and draw(st.booleans()):
        block.append(draw(_statement(depth, budget)))
    return block


@st.composite
def _statement(draw, depth: int, budget: list) -> tuple:
    budget[0] -= 1
    kind = draw(st.sampled_from(["call", "call", "set", "set", "if", "loop", "return"]))
    if kind in ("if", "loop") and depth and budget[0] > 0:
        if kind == "loop":
            return (kind, draw(st.integers(1, 4)), draw(_block(depth - 1, budget)))
        joints = draw(st.lists(st.sampled_from("&|"), max_size=min(2, budget[0] - 1)))
        budget[0] -= len(joints)
        symbols = st.sampled_from(["", "", "==", "!=", "<", ">", "<=", ">="])
        terms = [(draw(_chain()), draw(symbols), draw(_chain())) for _ in range(len(joints) + 1)]
        return (kind, terms, joints, draw(_block(depth - 1, budget)))
    if kind == "set":
        return (kind, draw(st.integers(1, 3)), draw(_chain()))
    if kind == "return":
        return (kind, draw(_chain()))
    return draw(_call(2, list(TELLO.skills)))


@st.composite
def trees(draw) -> list:
    """A plan for the Tello, within its bounds."""
    return draw(_block(3, [TELLO.bounds.max_statements - 1]))


class Writer:
    """Writes a tree as a plan, in one of the many ways that mean the same."""

    def __init__(self, choose) -> None:
        self.choose = choose  # a function from a number of choices to one of them

    def plan(self, block: list) -> str:
        text = self.block(block)
        while text.endswith("}") and self.choose(4) == 0:  # the end closes open blocks
            text = text[:-1]
        return text

    def block(self, block: list) -> str:
        parts = []
        for i, statement in enumerate(block):
            needed = statement[0] not in ("if", "loop") and i < len(block) - 1
            parts.append(self.statement(statement) + ";" * (needed or self.choose(2)))
        return "".join(parts)

    def statement(self, statement: tuple) -> str:
        kind = statement[0]
        if kind == "call":
            return self.operand(statement)
        if kind == "set":
            return f"_{statement[1]}{self.space()}={self.chain(statement[2])}"
        if kind == "return":
            return f"->{self.chain(statement[1])}"
        if kind == "loop":
            return f"{statement[1]}{self.space()}{{{self.block(statement[2])}}}"
        _, terms, joints, block = statement
        condition = self.term(terms[0])
        for joint, term in zip(joints, terms[1:], strict=True):
            condition += joint + self.term(term)
        arrow = "->" * self.choose(2)
        return f"?{condition}{arrow}{{{self.space()}{self.block(block)}}}"

    def term(self, term: tuple) -> str:
        left, symbol, right = term
        return self.chain(left) + (symbol + self.chain(right) if symbol else "")

    def chain(self, chain: list) -> str:
        return "".join(self.space() + (p if isinstance(p, str) else self.operand(p)) for p in chain)

    def operand(self, operand: tuple) -> str:
        kind, value = operand[:2]
        if kind == "variable":
            return f"_{value}"
        if kind == "minus":
            return f"-{self.operand(value)}"
        if kind == "call":
            name = TELLO[value].long_name if self.choose(4) == 0 else value
            if not operand[2] and self.choose(2):
                return name
            return f"{name}({','.join(map(self.chain, operand[2]))})"
        if isinstance(value, str):
            quote = "'" if '"' in value or self.choose(2) else '"'
            return quote + value + quote
        return str(value)

    def space(self) -> str:
        return ["", "", "", "", " ", "\n"][self.choose(6)]


@st.composite
def plans(draw) -> tuple[list, str]:
    """A tree and a text for it."""
    tree = draw(trees())
    rng = draw(st.randoms(use_true_random=False))
    return tree, Writer(rng.randrange).plan(tree)
