"""Prompts to token ids, with a tokenizer of one token a character: templates and fixed parts."""

import jinja2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from timely_llm.engine.encoding import PromptEncoder, read_chat_template
from timely_llm.protocols.engine import InvalidArgument

TEMPLATE = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}<assistant>"
NO_SYSTEM = (
    "{% if messages[0].role == 'system' %}{{ raise_exception('no system role') }}{% endif %}"
    + TEMPLATE
)


class Characters:
    """A stand-in for a tokenizer: one token a character, two line breaks are one, ``^`` opens."""

    def __init__(self, chat_template: str | None = None) -> None:
        self.chat_template = chat_template

    def __call__(self, text: str, add_special_tokens: bool = True) -> dict[str, list[int]]:
        text = ("^" if add_special_tokens else "") + text.replace("\n\n", "\r")
        return {"input_ids": [ord(character) for character in text]}

    def apply_chat_template(self, messages, *, chat_template, tokenize, add_generation_prompt):
        assert not tokenize
        assert add_generation_prompt

        def refuse(text):
            raise jinja2.TemplateError(text)

        environment = jinja2.Environment()
        template = environment.from_string(chat_template)
        return template.render(messages=messages, raise_exception=refuse)


def text(tokens: list[int]) -> str:
    return "".join(map(chr, tokens))


def test_without_a_chat_template_the_texts_are_joined():
    encoder = PromptEncoder(Characters())
    assert text(encoder.tokens("fixed ", "own")) == "^fixed own"
    assert text(encoder.tokens("fixed ", None)) == "^fixed "


def test_with_one_there_are_two_messages_and_no_second_opening():
    for encoder in (PromptEncoder(Characters(TEMPLATE)), PromptEncoder(Characters(), TEMPLATE)):
        assert text(encoder.tokens("fixed", "own")) == "<system>fixed<user>own<assistant>"
        assert text(encoder.tokens("fixed", None)) == "<system>fixed<user>"


def test_a_given_template_goes_before_the_tokenizers():
    encoder = PromptEncoder(
        Characters(TEMPLATE), "{% for m in messages %}{{ m.content }}|{% endfor %}"
    )
    assert text(encoder.tokens("fixed", "own")) == "fixed|own|"


def test_a_template_without_a_system_role_gets_one_message():
    encoder = PromptEncoder(Characters(NO_SYSTEM))
    assert text(encoder.tokens("fixed", "own")) == "<user>fixed\rown<assistant>"
    assert text(encoder.tokens("fixed", None)) == "<user>fixed\r"


@pytest.mark.parametrize(
    ("template", "error"),
    [
        ("{{ messages | length }}", "it leaves out a message"),
        ("{{ messages[7].content }}", "no element 7"),
        ("{% for %}", "Expected"),
        ("/no/such/file", "No such file"),
    ],
)
def test_a_template_that_does_not_work_is_refused(template, error):
    with pytest.raises(InvalidArgument, match=f"chat template.*{error}"):
        PromptEncoder(Characters(), template)


def test_a_chat_template_is_a_text_or_a_file(tmp_path):
    file = tmp_path / "chat.jinja2"
    file.write_text(TEMPLATE)
    assert read_chat_template(str(file)) == TEMPLATE
    assert read_chat_template(TEMPLATE) == TEMPLATE
    assert read_chat_template("") is read_chat_template(None) is None


@given(st.text("ab\n ", max_size=20), st.text("ab\n ", min_size=1, max_size=20), st.booleans())
def test_the_fixed_part_begins_every_prompt_but_for_its_last_token(system, user, chat):
    """The last token may merge with what follows: whole KV blocks before it are shared."""
    encoder = PromptEncoder(Characters(TEMPLATE if chat else None))
    fixed, prompt = encoder.tokens(system, None), encoder.tokens(system, user)
    assert fixed
    assert prompt[: len(fixed) - 1] == fixed[:-1]
