"""Reads plans while they are written, checks them, and turns them into instructions.

The language is TypeFly's MiniSpec within the bounds of a skill set; ``docs/language.md`` is its
reference. Recursive descent over a growing text: the parser is a generator that waits for tokens.
Nothing here runs a plan.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable
from typing import NoReturn, TypeAlias

from timely_llm.language import instructions as code
from timely_llm.language.instructions import Call
from timely_llm.language.lexer import Lexer, PlanError, Token
from timely_llm.language.skills import Skill, SkillCallError, SkillSet, Value
from timely_llm.validation.names import did_you_mean

__all__ = ["Call", "Parser", "PlanError", "parse"]

REFUSAL = "refuse"  # the statement that no skill may be named like
MAX_OPEN_CALLS = 4  # calls inside the arguments of calls
_COMPARISONS = ("==", "!=", "<=", ">=", "<", ">")
_NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?")
_BOOLEANS = {"True": True, "False": False}
_Wait: TypeAlias = Generator[None, Token, None]
_WaitValue: TypeAlias = Generator[None, Token, "Value | None"]


class Parser:
    """Appends to ``program`` and ``calls`` what each text completes.

    A call is complete at its closing parenthesis, whatever follows. A fault is a ``PlanError``,
    the same one again for whatever is fed after it. With ``defines``, the text is the definition
    of that skill, and ``$1`` is its first argument.
    """

    def __init__(self, skills: SkillSet, defines: Skill | None = None) -> None:
        self.skills = skills
        self._defines = defines
        self.program: list[code.Instruction] = []
        self.calls: list[Call] = []
        self.error: PlanError | None = None
        self._bounds = skills.bounds
        self._lexer = Lexer(skills.bounds.max_string)
        self._length = 0
        self._statements = 0
        self._open_calls = 0
        self._written: list[str] = []  # the texts of all tokens
        self._token = Token("end", "", 0)
        self._run = self._plan()
        next(self._run)

    @property
    def inside(self) -> bool:
        """Whether what comes next belongs to a value or a name: the text so far ends in a call, or
        in a word that could still grow."""
        growing = self._lexer.growing
        whole = growing in _BOOLEANS or growing.startswith("_")
        return self._open_calls > 0 or bool(growing and not whole)

    def feed(self, text: str) -> list[Call]:
        """Read on: the calls that ``text`` completes. Raises ``PlanError`` at the first fault."""
        limit = self._bounds.max_plan_chars
        allowed = limit - self._length
        self._length += min(len(text), allowed)
        calls = self._send(self._lexer.feed(text[:allowed]))
        if len(text) > allowed:
            self.error = PlanError(limit, f"the plan is longer than max_plan_chars, {limit}")
            raise self.error
        return calls

    def finish(self) -> list[Call]:
        """The plan is over: the calls that its end completes, which is at most one, without
        parentheses. Raises ``PlanError`` if it is empty or cut off in the middle."""
        return self._send(self._lexer.feed("", last=True))

    def _send(self, tokens: Iterable[Token]) -> list[Call]:
        known = len(self.calls)
        if self.error is not None:
            raise self.error
        try:
            for token in tokens:
                self._written.append(token.text)
                self._run.send(token)
        except StopIteration:
            self.error = PlanError(self._length, "the plan has already ended")
        except PlanError as error:
            self.error = error
            raise
        return self.calls[known:]

    # ---- statements ----------------------------------------------------------------------------

    def _plan(self) -> _Wait:
        self._token = yield
        yield from self._block(0)

    def _block(self, depth: int) -> _Wait:
        """Statements up to the closing brace or the end of the plan, which closes all blocks."""
        while True:
            simple = yield from self._statement(depth)
            separated = self._token.kind == ";"
            if separated:
                self._token = yield
            if self._token.kind == "end" or (self._token.kind == "}" and depth):
                return
            if simple and not separated:
                self._expected("';'")

    def _statement(self, depth: int) -> Generator[None, Token, bool]:
        """Returns whether a semicolon has to follow."""
        token = self._token
        self._count_statement(token)
        if token.text == REFUSAL:
            yield from self._refusal()
        elif token.kind == "name":
            yield from self._call(dropped=True)
        elif token.kind == "variable":
            yield from self._assignment()
        elif token.kind == "->":
            self._token = yield
            yield from self._expression()
            self.program.append(code.Return())
        elif token.kind in ("?", "number"):
            if depth == self._bounds.max_nesting:
                self._fail(token, f"blocks are nested deeper than max_nesting, {depth}")
            yield from (self._condition(depth) if token.kind == "?" else self._loop(depth))
            return False
        else:
            self._expected("a statement")
        return True

    def _refusal(self) -> _Wait:
        self._open_calls += 1
        self._token = yield
        yield from self._take("(", f"'(' after {REFUSAL}")
        reason = self._token.text[1:-1]
        if self._token.kind != "string" or not reason.strip():
            self._fail(self._token, f"{REFUSAL} takes the reason, a text in quotes")
        self._token = yield
        self._require(")", "')'")
        self._open_calls -= 1
        self.program.append(code.Refuse(reason))
        self._token = yield

    def _count_statement(self, token: Token) -> None:
        self._statements += 1
        limit = self._bounds.max_statements
        if self._statements > limit:
            self._fail(token, f"the plan has more than max_statements, {limit}")

    def _assignment(self) -> _Wait:
        variable = self._variable()
        self._token = yield
        yield from self._take("=", "'='")
        yield from self._expression()
        self.program.append(code.Store(variable.text, variable.start))

    def _condition(self, depth: int) -> _Wait:
        self._token = yield
        yield from self._term()
        while self._token.kind in ("&", "|"):
            self._count_statement(self._token)
            skip = code.Skip(when=self._token.kind == "|")
            self.program.append(skip)
            self._token = yield
            yield from self._term()
            skip.target = len(self.program)
        if self._token.kind == "->":
            self._token = yield
        self._require("{", "a comparison, '&', '|' or '{'")
        enter = code.Enter()
        self.program.append(enter)
        self._token = yield
        yield from self._block(depth + 1)
        enter.target = len(self.program)
        yield from self._leave()

    def _term(self) -> _Wait:
        yield from self._expression()
        if self._token.kind in _COMPARISONS:
            operator = self._token
            self._token = yield
            yield from self._expression()
            self.program.append(code.Apply(operator.kind, operator.start))

    def _loop(self, depth: int) -> _Wait:
        token, limit = self._token, self._bounds.max_loop
        count = self._number(limited=False)
        if isinstance(count, float) or not 1 <= count <= limit:
            self._fail(token, f"a loop of {token.text} passes: must be a whole number 1 to {limit}")
        self._token = yield
        self._require("{", "'{' after the number of passes")
        self.program.append(code.Repeat(count, token.start))
        start = len(self.program)
        self._token = yield
        yield from self._block(depth + 1)
        self.program.append(code.Again(start, token.start))
        yield from self._leave()

    def _leave(self) -> _Wait:
        """Past a closing brace; the end of the plan is left for the outer blocks."""
        if self._token.kind == "}":
            self._token = yield

    # ---- expressions: each returns the value if it is a literal, else None ---------------------

    def _expression(self) -> _WaitValue:
        return (yield from self._operations(("+", "-"), self._product))

    def _product(self) -> _WaitValue:
        return (yield from self._operations(("*", "/"), self._operand))

    def _operations(
        self, operators: tuple[str, str], operand: Callable[[], _WaitValue]
    ) -> _WaitValue:
        value = yield from operand()
        while self._token.kind in operators:
            operator = self._token
            self._token = yield
            yield from operand()
            self.program.append(code.Apply(operator.kind, operator.start))
            value = None
        return value

    def _operand(self) -> _WaitValue:
        token = self._token
        if token.kind in ("-", "+"):
            self._token = yield
            if self._token.kind == "number":
                value = self._number()
                return (yield from self._literal(-value if token.kind == "-" else value))
            yield from self._atom()
            if token.kind == "+":
                return None
            self.program.append(code.Negate(token.start))
            return None
        return (yield from self._atom())

    def _atom(self) -> _WaitValue:
        token = self._token
        if token.kind == "number":
            return (yield from self._literal(self._number()))
        if token.kind == "string":
            return (yield from self._literal(token.text[1:-1]))
        if token.text in _BOOLEANS:
            return (yield from self._literal(_BOOLEANS[token.text]))
        if token.kind == "variable":
            self._variable()
            self.program.append(code.Load(token.text, token.start))
            self._token = yield
        elif token.kind == "argument":
            self._argument()
            self.program.append(code.Load(token.text, token.start))
            self._token = yield
        elif token.kind == "name":
            yield from self._call(dropped=False)
        else:
            self._expected("a value")
        return None

    def _literal(self, value: Value) -> _WaitValue:
        self.program.append(code.Push(value))
        self._token = yield
        return value

    def _call(self, dropped: bool) -> _Wait:
        name = self._token
        skill = self._skill(name)
        if not dropped and skill.returns == "none":
            self._fail(name, f"{skill.name} returns nothing, but its value is used")
        if self._open_calls == MAX_OPEN_CALLS:
            self._fail(name, f"calls are nested deeper than {MAX_OPEN_CALLS}")
        self._token = yield
        if self._token.kind != "(" and not skill.arguments:
            self._append(Call(skill.name, (), (), name.start, name.start + len(name.text)), dropped)
            return
        if self._token.start != name.start + len(name.text):  # the segment rule reads "mf("
            self._expected(f"'(' right after {name.text}")
        self._require("(", f"'(' right after {name.text}")
        self._open_calls += 1
        self._token = yield
        arguments: list[str] = []
        values: list[Value | None] = []
        while self._token.kind != ")" or arguments:
            first = len(self._written) - 1
            values.append((yield from self._expression()))
            arguments.append("".join(self._written[first:-1]))
            if self._token.kind == ")":
                break
            yield from self._take(",", "',' or ')'")
        self._open_calls -= 1
        call = Call(skill.name, tuple(arguments), tuple(values), name.start, self._token.start + 1)
        try:
            skill.check(values)
        except SkillCallError as error:
            self._fail(name, str(error))
        self._append(call, dropped)
        self._token = yield

    def _append(self, call: Call, dropped: bool) -> None:
        skill = self.skills[call.name]
        self.program.append(code.Invoke(skill, call, len(self.calls), dropped))
        self.calls.append(call)

    # ---- tokens --------------------------------------------------------------------------------

    def _skill(self, name: Token) -> Skill:
        skill = self.skills.get(name.text)
        if skill is None:
            likely = did_you_mean(name.text, self.skills.callable_names, ": {}")
            self._fail(name, f"{name.text!r} is not a skill of {self.skills.kind}{likely}")
        return skill

    def _variable(self) -> Token:
        number, limit = self._token.text[1:], self._bounds.max_variables
        if not (number and len(number) == 1 and 1 <= int(number) <= limit):
            self._fail(self._token, f"variable {self._token}: must be _1 to _{limit}")
        return self._token

    def _argument(self) -> None:
        token, skill = self._token, self._defines
        if skill is None:
            self._fail(token, f"{token}: arguments stand only in definitions of skills")
        count = len(skill.arguments)
        if not 1 <= int(token.text[1:]) <= count or token.text[1] == "0":
            limits = f"must be $1 to ${count}" if count else f"{skill.name} takes no argument"
            self._fail(token, f"{token}: {limits}")

    def _number(self, limited: bool = True) -> int | float:
        token, limit = self._token, self._bounds.max_number
        if not _NUMBER.fullmatch(token.text):
            self._fail(
                token, f"{token} is no number: must be digits, with a point between them or none"
            )
        value = float(token.text) if "." in token.text else int(token.text)
        if limited and value > limit and not self._open_calls:  # arguments have their own limits
            self._fail(token, f"{token.text} is more than max_number, {limit}")
        return value

    def _take(self, kind: str, what: str) -> _Wait:
        self._require(kind, what)
        self._token = yield

    def _require(self, kind: str, what: str) -> None:
        if self._token.kind != kind:
            self._expected(what)

    def _expected(self, what: str) -> NoReturn:
        if self._token.kind == "end":
            self._fail(self._token, f"the plan is cut off: {what} is missing")
        self._fail(self._token, f"unexpected {self._token}: {what} must stand here")

    def _fail(self, token: Token, reason: str) -> NoReturn:
        raise PlanError(token.start, reason)


def parse(plan: str, skills: SkillSet) -> list[Call]:
    """Check a whole plan and return its calls in the order of the text."""
    parser = Parser(skills)
    return parser.feed(plan) + parser.finish()
