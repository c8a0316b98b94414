"""Prompts out of jinja2 templates. Pure: a skill set and two texts in, prompt texts out.

A template has two blocks. ``system`` sees ``skills`` (a ``SkillSet``) and ``examples`` (of the
skill set, or made of its skills, see ``examples.py``): it is the same for all goals of a robot
kind, so that it is computed once. ``user`` also sees ``scene`` and ``instruction``. With a block
``example``, which sees these as well, the examples are turns of a chat, between both: each is what
the block makes of it, and its plan as the answer. A block ``probe`` may follow, for questions
from inside a running plan; there, ``instruction`` is the question. A block ``replan`` may follow
too, for a goal whose plan has failed: it also sees ``attempts``, the plans so far (``Attempt`` in
``history.py``). What stands outside of the blocks is no part of a prompt; macros may stand there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import jinja2
from jinja2 import nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment, SecurityError

from timely_llm.language.grammar import plan_grammar
from timely_llm.language.naming import in_words
from timely_llm.language.skills import SkillSet
from timely_llm.paths import share
from timely_llm.prompts.examples import examples
from timely_llm.prompts.fixed import FixedPrompt
from timely_llm.prompts.history import Attempt
from timely_llm.protocols.engine import Turn
from timely_llm.validation.names import did_you_mean
from timely_llm.validation.reader import FileError, file_text

FILE_NAME = "prompt.jinja2"
"""A model folder may hold a template of this name, for prompts as the model knows them."""

_VARIABLES = ("skills", "examples", "scene", "instruction", "attempts")
_BLOCKS = ("system", "user")
_OPTIONAL = ("example", "probe", "replan")
SHORT, WORDS, AUTO = PLAN_NAMES = ("short", "words", "auto")


def failure_words(attempt: Attempt) -> str:
    """What became of a plan, in one sentence and its history (TimelyLLM, tasks T5 to T7)."""
    calls = ";".join(done.call for done in attempt.done)
    return (
        f"You provided me with plan {attempt.plan.rstrip(';')}, but I encountered a failure "
        f"because {attempt.failure}. Execution history: {calls or 'none'}"
    )


class TemplateError(ValueError):
    """A prompt template that cannot be used; the text names it and, if known, the line."""

    def __init__(self, source: str, line: int | None, reason: str) -> None:
        super().__init__(f"prompt template {source}{f':{line}' if line else ''}: {reason}")
        self.source = source
        self.line = line
        self.reason = reason


class _Sandbox(ImmutableSandboxedEnvironment):
    """Where a few characters cannot take all of time and memory by multiplying."""

    intercepted_binops = frozenset(("*", "**"))

    def call_binop(
        self, context: jinja2.runtime.Context, operator: str, left: Any, right: Any
    ) -> Any:
        numbers = isinstance(left, int | float) and isinstance(right, int | float)
        if operator == "**" or not numbers:
            raise SecurityError(f"a prompt has no {operator}, but for numbers' *")
        return super().call_binop(context, operator, left, right)


def _environment() -> jinja2.Environment:
    return _Sandbox(
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


class PromptTemplate:
    """A checked template: blocks and variables are known to be right before the first goal.

    ``names`` are those that skills have in prompts and in the plans that answer them: ``short``
    (``mf(100)``) or ``words`` (``move_forward(100)``).
    """

    def __init__(self, text: str, source: str = "<template>", names: str = SHORT) -> None:
        self.text, self.source, self.names = text, source, names
        environment = _environment()
        try:
            self._check(environment.parse(text), set(environment.globals))
            code = environment.compile(text, source, source)
        except jinja2.TemplateSyntaxError as error:
            raise TemplateError(source, error.lineno, error.message or "syntax error") from None
        except TemplateError:
            raise
        except Exception as error:  # of the compilers: nested too deeply, a number of many digits
            raise TemplateError(source, None, f"cannot be compiled: {error}") from None
        self._template = jinja2.Template.from_code(environment, code, dict(environment.globals))

    @classmethod
    def from_file(cls, path: str | Path, names: str = SHORT) -> PromptTemplate:
        """Read a template; ``TemplateError`` where that fails."""
        try:
            return cls(file_text(path), str(path), names)
        except OSError as error:
            reason = (error.strerror or "cannot be read").lower()
            raise TemplateError(str(path), None, reason) from None
        except FileError as error:
            raise TemplateError(str(path), error.line, error.reason) from None

    @classmethod
    def default(cls, names: str = WORDS) -> PromptTemplate:
        """The template for any model that follows instructions: guidance, skills, examples."""
        return cls.from_file(share("config", "prompts", "default.jinja2"), names)

    @classmethod
    def resolve(cls, parameter: str, model_dir: str, names: str = AUTO) -> PromptTemplate:
        """The template in the file ``parameter``; if that is empty, the model's own; else the
        default. ``model_dir`` may also be the name of a model, which then has no template.

        ``names``, where they are ``auto``: ``short`` for a model that brings a template, which was
        trained on it; ``words`` for any other.
        """
        own = Path(model_dir, FILE_NAME)
        trained = bool(model_dir) and own.is_file()
        if names == AUTO:
            names = SHORT if trained else WORDS
        if parameter:
            return cls.from_file(Path(parameter).expanduser(), names)
        return cls.from_file(own, names) if trained else cls.default(names)

    def named(self, skills: SkillSet) -> SkillSet:
        """The skills by the names that prompts and their answers have."""
        return in_words(skills) if self.names == WORDS else skills

    def fixed(self, skills: SkillSet) -> FixedPrompt:
        """What all requests for robots with ``skills`` share."""
        return FixedPrompt(
            self.system(skills), tuple(self._turns(skills)), plan_grammar(self.named(skills))
        )

    def _turns(self, skills: SkillSet) -> Iterator[Turn]:
        if "example" in self._template.blocks:
            for each in examples(self.named(skills)):
                texts = {"scene": each.scene, "instruction": each.instruction}
                yield self._render("example", skills, texts), each.plan

    def system(self, skills: SkillSet) -> str:
        """The text that every prompt for a robot with ``skills`` begins with."""
        return self._render("system", skills, {})

    def user(self, skills: SkillSet, scene: str, instruction: str) -> str:
        """A goal's own part of its prompt."""
        return self._render("user", skills, {"scene": scene, "instruction": instruction})

    def replan(
        self, skills: SkillSet, scene: str, instruction: str, attempts: Sequence[Attempt]
    ) -> str:
        """A goal's own part of the prompt where its plans so far, at least one, have failed. In
        a template without such a block the last failure follows the instruction."""
        texts = {"scene": scene, "instruction": instruction, "attempts": tuple(attempts)}
        if "replan" in self._template.blocks:
            return self._render("replan", skills, texts)
        return self.user(skills, scene, f"{instruction} {failure_words(attempts[-1])}")

    @property
    def has_probe(self) -> bool:
        """Whether the model can be asked questions."""
        return "probe" in self._template.blocks

    def probe(self, skills: SkillSet, scene: str, question: str) -> str:
        """The prompt of a question, after the fixed part; the template must have such a block."""
        return self._render("probe", skills, {"scene": scene, "instruction": question})

    def _render(self, block: str, skills: SkillSet, texts: Mapping[str, object]) -> str:
        """Run the template with only ``block`` rendered: its macros and variables are there."""
        named = self.named(skills)
        own = {"skills": named, "examples": examples(named)}
        context = self._template.new_context(own | dict(texts))
        wanted = context.blocks[block][0]
        pieces: list[str] = []

        def capture(inner: jinja2.runtime.Context) -> Iterator[str]:
            pieces.extend(wanted(inner))
            return iter(())

        for name in {*_BLOCKS, *_OPTIONAL} & set(context.blocks):  # blocks inside of them stay
            context.blocks[name] = [capture if name == block else lambda inner: iter(())]
        try:
            for _ in self._template.root_render_func(context):
                pass
        except Exception as error:  # whatever an expression of the template raises
            line = self._line(error.__traceback__)
            raise TemplateError(self.source, line, f"block {block}: {error}") from error
        return "".join(pieces)

    def _line(self, traceback: TracebackType | None) -> int | None:
        """The template's line in which an error arose."""
        line = None
        while traceback is not None:
            if traceback.tb_frame.f_code.co_filename == self.source:
                line = self._template.get_corresponding_lineno(traceback.tb_lineno)
            traceback = traceback.tb_next
        return line

    def _check(self, tree: nodes.Template, functions: set[str]) -> None:
        """It stands alone, knows every name, has both blocks, and each uses what it may."""
        kinds = (nodes.Extends, nodes.Include, nodes.Import, nodes.FromImport)
        for node in tree.find_all(kinds):
            raise TemplateError(self.source, node.lineno, "uses another template: must stand alone")
        known = {*_VARIABLES, *functions, "caller", "varargs", "kwargs", "loop"}
        known |= {name.name for name in tree.find_all(nodes.Name) if name.ctx != "load"}
        known |= {macro.name for macro in tree.find_all(nodes.Macro)}
        for name in sorted({name.name for name in tree.find_all(nodes.Name)}):
            if name not in known:
                likely = did_you_mean(name, _VARIABLES, " ({})", cutoff=0)
                self._refuse(tree, name, f"unknown variable '{name}'{likely}")
        blocks = {block.name: block for block in tree.find_all(nodes.Block)}
        for name in _BLOCKS:
            if name not in blocks:
                raise TemplateError(self.source, None, f"has no block '{name}'")
        for name in ("scene", "instruction"):
            self._refuse(
                blocks["system"],
                name,
                f"block system uses '{name}', but is computed once for all goals",
            )
        for name in blocks.keys() - {"replan"}:
            words = f"block {name} uses 'attempts', which only block replan sees"
            self._refuse(blocks[name], "attempts", words)
        if "instruction" not in {name.name for name in blocks["user"].find_all(nodes.Name)}:
            line = blocks["user"].lineno
            raise TemplateError(self.source, line, "block user does not use 'instruction'")

    def _refuse(self, tree: nodes.Node, name: str, reason: str) -> None:
        lines = [node.lineno for node in tree.find_all(nodes.Name) if node.name == name]
        if lines:
            raise TemplateError(self.source, min(lines), reason)
