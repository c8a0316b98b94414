"""Files of instructions: what is read, and what is wrong with others."""

import json

import pytest

from timely_llm.evaluation.instructions import Instruction, kinds, read_instructions
from timely_llm.validation.reader import FileError


def test_a_list_is_read(tmp_path):
    file = tmp_path / "asked.json"
    file.write_text('[{"kind": "tello", "instruction": "Go."}]')
    assert read_instructions(file) == (Instruction("tello", "Go.", ""),)
    assert {"tello", "indy7", "rover"} <= kinds().keys()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ([], "must"),
        ({}, "must be a list"),
        ([{"kind": "tello"}], "instructions[0]: 'instruction' is missing"),
        ([{"kind": "telo", "instruction": "Go."}], "instructions[0].kind: 'telo' is unknown"),
        ([{"kind": "tello", "instruction": ""}], "instructions[0].instruction"),
        ([{"kind": "tello", "instruction": "Go.", "sceen": ""}], "sceen"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, content, words):
    file = tmp_path / "asked.json"
    file.write_text(json.dumps(content))
    with pytest.raises(FileError) as caught:
        read_instructions(file)
    assert words in str(caught.value) and str(file) in str(caught.value)
