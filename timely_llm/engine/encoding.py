"""From prompt texts to token ids, by a tokenizer that is passed in. No inference library.

Nobody's words can open a turn: what stands in a chat template's own text may become control tokens,
what a skill set, a goal or a robot says never does.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from timely_llm.protocols.engine import InvalidArgument, Turn
from timely_llm.validation.reader import FileError, file_text

_PROBES = ("\nA", "a", " 0", "[")
"""User texts that begin differently: what their prompts share is the fixed part."""


def read_chat_template(chat_template: str | None) -> str | None:
    """A chat template, given as a jinja2 text or as the path of a file with one."""
    if not chat_template or "{" in chat_template:
        return chat_template or None
    try:
        return file_text(Path(chat_template).expanduser())
    except (OSError, FileError) as error:
        raise InvalidArgument(f"chat template {chat_template!r}: {error}") from None


class PromptEncoder:
    """Token ids of prompts: by the chat template if there is one, else of the bare text.

    ``tokenizer`` is a Hugging Face tokenizer. A chat template that knows no system role gets the
    system text at the beginning of the first user message.
    """

    def __init__(self, tokenizer: Any, chat_template: str | None = None) -> None:
        self._tokenizer = tokenizer
        self._template = read_chat_template(chat_template) or getattr(
            tokenizer, "chat_template", None
        )
        control = sorted(getattr(tokenizer, "get_added_vocab", dict)(), key=len, reverse=True)
        # Behind the first character of each: no text that is cut there holds a control token.
        places = [f"(?<={re.escape(t[0])})(?={re.escape(t[1:])})" for t in control if t[1:]]
        self._inside = re.compile("|".join(places) or "(?!)")
        self._system_role = True
        if self._template is not None:
            self._probe()

    def tokens(self, system: str, user: str | None, examples: Sequence[Turn] = ()) -> list[int]:
        """The prompt's token ids; with ``user`` None those of its fixed part alone."""
        if self._template is None:
            told = "".join(f"{asked}{answer}\n" for asked, answer in examples)
            return self._bare(system + told, user)
        pieces = list(self._pieces(system, user or "", examples))
        if user is None:
            del pieces[-2:]  # the user's words, and what opens the answer
        return [token for piece in pieces for token in piece]

    def _bare(self, fixed: str, user: str | None) -> list[int]:
        if user is not None:
            return self._plain(fixed + user, add_special_tokens=True)
        prompts = [self._bare(fixed, probe) for probe in _PROBES]
        shortest = min(map(len, prompts))
        length = next(
            (i for i in range(shortest) if len({prompt[i] for prompt in prompts}) > 1), shortest
        )
        return prompts[0][: max(1, length)]

    def _plain(self, text: str, add_special_tokens: bool = False) -> list[int]:
        """Ids of a text in which nothing is a control token."""
        first, *rest = self._inside.split(text)
        ids = list(self._tokenizer(first, add_special_tokens=add_special_tokens)["input_ids"])
        for part in rest:
            ids += self._tokenizer(part, add_special_tokens=False)["input_ids"]
        return ids

    def _pieces(self, system: str, user: str, examples: Sequence[Turn]) -> Iterator[list[int]]:
        """The template's own texts and the messages' contents, by turns."""
        contents = [system, *(text for turn in examples for text in turn), user]
        for i, text in enumerate(self._render(contents)):
            if i % 2:
                yield self._plain(text)
            else:
                yield self._tokenizer(text, add_special_tokens=False)["input_ids"]

    def _render(self, contents: Sequence[str]) -> list[str]:
        """What the template makes of the messages with these contents (system, then user and
        assistant by turns, user), cut at each content."""
        nonce = secrets.token_hex(8)
        marks = [f"[{nonce}.{i}]" for i in range(len(contents))]
        roles = ("user", "assistant")
        if self._system_role:
            messages = [{"role": "system", "content": marks[0]}]
            spoken = marks[1:]
        else:
            messages, spoken = [], [f"{marks[0]}\n\n{marks[1]}", *marks[2:]]
        messages += [{"role": roles[i % 2], "content": mark} for i, mark in enumerate(spoken)]
        text = self._tokenizer.apply_chat_template(
            messages, chat_template=self._template, tokenize=False, add_generation_prompt=True
        )
        parts = re.split(rf"(\[{nonce}\.\d+\])", text)
        if parts[1::2] != marks:
            raise InvalidArgument("chat template: it leaves out a message, or says one twice")
        parts[1::2] = contents
        return parts

    def _probe(self) -> None:
        """Find out whether the template works, and with a system role."""
        for self._system_role in (True, False):
            try:
                self._render(["fixed", "asked", "answered", "own"])
                return
            except InvalidArgument as failure:
                error = str(failure)
            except Exception as failure:  # templates raise what they like
                error = f"chat template: {failure}"
        raise InvalidArgument(error)
