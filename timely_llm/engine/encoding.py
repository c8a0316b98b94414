"""From prompt texts to token ids, by a tokenizer that is passed in. No inference library."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from timely_llm.protocols.engine import InvalidArgument
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

    ``tokenizer`` is a Hugging Face tokenizer. A chat template that knows no system role gets both
    parts as one user message.
    """

    def __init__(self, tokenizer: Any, chat_template: str | None = None) -> None:
        self._tokenizer = tokenizer
        self._template = read_chat_template(chat_template) or getattr(
            tokenizer, "chat_template", None
        )
        self._system_role = True
        if self._template is not None:
            self._probe()

    def tokens(self, system: str, user: str | None) -> list[int]:
        """The prompt's token ids; with ``user`` None those of its fixed part alone."""
        if user is None:
            return self._fixed(system)
        if self._template is None:
            return self._tokenizer(system + user)["input_ids"]
        text = self._render(system, user)
        return self._tokenizer(text, add_special_tokens=False)["input_ids"]

    def _fixed(self, system: str) -> list[int]:
        """The longest common prefix of prompts that differ in the user's part; one token at least,
        for a prompt must have one."""
        prompts = [self.tokens(system, probe) for probe in _PROBES]
        shortest = min(map(len, prompts))
        length = next(
            (i for i in range(shortest) if len({prompt[i] for prompt in prompts}) > 1), shortest
        )
        return prompts[0][: max(1, length)]

    def _render(self, system: str, user: str) -> str:
        messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
        if not self._system_role:
            messages = [{"role": "user", "content": f"{system}\n\n{user}"}]
        return self._tokenizer.apply_chat_template(
            messages,
            chat_template=self._template,
            tokenize=False,
            add_generation_prompt=True,
        )

    def _probe(self) -> None:
        """Find out whether the template works, and with a system role."""
        for self._system_role in (True, False):
            try:
                text = self._render("fixed part", "own words")
            except Exception as failure:  # templates raise what they like
                error: str = str(failure)
                continue
            if "fixed part" in text and "own words" in text:
                return
            error = "it leaves out a message"
        raise InvalidArgument(f"chat template: {error}")
