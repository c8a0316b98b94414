"""For tests: what a plan means, by walking its tree; apart from the code under test. No tests here.

Trees are those of ``plan_language.py``.
"""

from plan_language import TELLO

from timely_llm.language.skills import value_text


class RefFault(Exception):
    """The reference stops here."""


class Ended(Exception):
    """The plan ended by itself."""


class Reference:
    """Walks a tree (``plan_language``) and carries out what it means."""

    def __init__(self, answers: list[int]) -> None:
        self.answers, self.calls, self.variables, self.steps = answers, [], {}, 0

    def run(self, tree: list):
        try:
            self.block(tree)
        except Ended as end:
            return end.args
        except RefFault:
            return ("fault",)
        return ("returned", None)

    def step(self) -> None:
        self.steps += 1
        if self.steps > TELLO.bounds.max_steps:
            raise RefFault

    def block(self, block: list) -> None:
        for kind, *parts in block:
            if kind == "call":
                self.operand((kind, *parts))
            elif kind == "set":
                value = self.chain(parts[1])
                self.step()
                self.variables[parts[0]] = value
            elif kind == "return":
                raise Ended("returned", self.chain(parts[0]))
            elif kind == "loop":
                for _ in range(parts[0]):
                    self.step()
                    self.block(parts[1])
            elif self.condition(*parts[:2]):
                self.block(parts[2])

    def condition(self, terms: list, joints: list) -> bool:
        result = self.term(terms[0])
        for joint, term in zip(joints, terms[1:], strict=True):
            if result == (joint == "&"):
                result = self.term(term)
        return result

    def term(self, term: tuple) -> bool:
        left, symbol = self.chain(term[0]), term[1]
        if not symbol:
            return bool(left)
        right = self.chain(term[2])
        if symbol in ("==", "!="):
            if bool in (type(left), type(right)):
                left, right = bool(left), bool(right)
            return (left == right) == (symbol == "==")
        self.numbers(left, right)
        return {"<": left < right, ">": left > right, "<=": left <= right, ">=": left >= right}[
            symbol
        ]

    def chain(self, chain: list):
        """Products first, in the order of the text."""
        values, symbols = [], []
        for part in chain:
            if isinstance(part, str):
                if part in "+-" and len(values) == 2:
                    values = [self.number(values[0], symbols.pop(0), values[1])]
                symbols.append(part)
                continue
            values.append(self.operand(part))
            if symbols and symbols[-1] in "*/":
                right, left = values.pop(), values.pop()
                values.append(self.number(left, symbols.pop(), right))
        if len(values) == 2:
            return self.number(values[0], symbols[0], values[1])
        return values[0]

    def numbers(self, *values) -> None:
        if any(type(value) not in (int, float) for value in values):
            raise RefFault

    def number(self, left, symbol, right):
        self.numbers(left, right)
        if symbol == "/" and right == 0:
            raise RefFault
        if symbol == "/":
            value = left / right
        elif symbol == "*":
            value = left * right
        else:
            value = left + right if symbol == "+" else left - right
        if abs(value) > 1e9:
            raise RefFault
        return value

    def operand(self, operand: tuple):
        kind, value = operand[:2]
        if kind == "value":
            return value
        if kind == "variable":
            if value not in self.variables:
                raise RefFault
            return self.variables[value]
        if kind == "minus":
            inner = self.operand(value)
            self.numbers(inner)
            return -inner
        return self.call(TELLO[value], [self.chain(chain) for chain in operand[2]])

    def call(self, skill, values: list):
        self.step()
        for argument, value in zip(skill.arguments, values, strict=True):
            if argument.type == "str":
                if not 1 <= len(value_text(value)) <= argument.maximum:
                    raise RefFault
            elif type(value) not in (int, float) or not (
                argument.minimum <= value <= argument.maximum
                and (argument.type == "float" or value == int(value))
            ):
                raise RefFault
        if skill.name == "rp":
            raise Ended("replan")
        evaluated = [
            value_text(int(v) if a.type == "int" else float(v) if a.type == "float" else v)
            for a, v in zip(skill.arguments, values, strict=True)
        ]
        if skill.name in ("s", "sa"):
            return self.look_around("iv" if skill.name == "s" else "p", values)
        self.calls.append((skill.name, tuple(evaluated)))
        return answer(skill.returns, self.answers, len(self.calls))

    def look_around(self, look: str, values: list):
        """What config/skills/tello.yaml has s and sa do."""
        for _ in range(8):
            self.step()
            found = self.call(TELLO[look], values)
            if look == "p":
                self.step()  # it is kept in a variable
            if found:
                return found
            self.call(TELLO["tc"], [45])
        return False


def answer(returns: str, answers: list[int], number: int):
    """What the robot says to its ``number``-th call, the same in both runs."""
    seed = answers[number % len(answers)]
    return {
        "none": None,
        "bool": seed % 2 == 0,
        "int": seed,
        "float": seed / 8,
        "str": ["cat", True, False, 7, 2.5][seed % 5],
    }[returns]
