"""The tokenizer: byte-level BPE that splits so that names are copied piece by piece.

Spaces and digits are tokens of their own, so a word has the same tokens behind a space, in quotes
and in a scene. A closing parenthesis ends its token, so a segment's border is a token's border.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

END = "<|end|>"
# Common words that are no object take the space behind them into their token.
_COMMON = """
a an the my some i you me it is are be was am to of on in at by for with and or then if so not no
next near up down left right forward back please could can would want need like your go move fly
turn find take put drop place pick get see there do look wait times repeat until degrees cm m s
seconds meters meter because but had this that one two three four five six seven eight nine ten
finally after otherwise check plan history execution failure encountered provided visible tell say
robot clockwise counterclockwise hey now ok rotate search step steps most than
""".split()  # noqa: SIM905
_PIECES = (
    rf"\[[aqe]\] |(?<![a-zA-Z])(?:{'|'.join(_COMMON)}) (?=[a-z0-9'\"_])"
    r"|[a-zA-Z]+|[0-9]| |\n|[^a-zA-Z0-9\s)\[]*\)|[^a-zA-Z0-9\s)\[]+|\[|\s"
)


def train_tokenizer(texts: Iterable[str], size: int) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_PIECES), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=[AddedToken(END, special=True)],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def save_tokenizer(tokenizer: Tokenizer, folder: Path) -> None:
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": END,
        "pad_token": END,
        "clean_up_tokenization_spaces": False,
        "model_max_length": 4096,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=1) + "\n")
    special = {"eos_token": END, "pad_token": END}
    (folder / "special_tokens_map.json").write_text(json.dumps(special, indent=1) + "\n")
