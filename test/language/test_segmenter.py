"""Segment rules: any split of the text gives the same segments, and joined they are the text."""

import itertools
import re
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from plan_language import CUTS, INDY7, PUBLISHED, ROVER, SEGMENTS, TELLO, split
from segment_reference import segments

from timely_llm.language import segmenter as segment
from timely_llm.language.segmenter import MAX_NAME, plan_detector, text_detector

# Pieces that plans, and texts that only look like plans, are made of.
_PIECES = """mf( move_forward( xmf( mf mf_( _mf( émf( s( iv( iv ( ) )) '( ' " cat 'a)' "b)" ')
    ; { } ? ==True & | -> 3{ _1= 100 , d(0.1) mf(od('x')) l('it\\'s') é m f _ 1( tu( dr
    dr; _dr; d r; op} mf; tp;"""
PLAN_PIECES = st.sampled_from([*_PIECES.split(), " ", "\n"])
PLAN_TEXT = st.lists(PLAN_PIECES, max_size=40).map("".join)
PROSE = st.text(st.sampled_from("ab .!?\"')]’”\n\t\r 9é"), max_size=60)


def ends(text: str, skills) -> list[int]:
    """Where segments end, read backwards from each bracket that closes one outside of quotes."""
    result: list[int] = []
    opened: list[int] = []
    quoted = ""
    for i, character in enumerate(text):
        if quoted or character in "'\"":
            quoted = "" if character == quoted else quoted or character
        elif character == "(":
            opened.append(i)
        elif character in ";}":
            word = re.search(r"[A-Za-z0-9_]*$", text[:i])[0]
            if word in skills and skills[word].timed and not skills[word].arguments:
                result.append(i + 1)
        elif character == ")" and opened:
            word = re.search(r"[A-Za-z0-9_]*$", text[: opened.pop()])[0]
            if any(
                word in (skill.name, skill.long_name) and skill.timed for skill in skills.skills
            ):
                result.append(i + 1)
    return result


def cut(text: str, places: list[int]) -> list[str]:
    """``text`` cut at ``places``, without an empty rest."""
    borders = [0, *places, len(text)]
    return [text[a:b] for a, b in itertools.pairwise(borders) if a < b]


def detect(detector, pieces: list[str]) -> list[str]:
    """All segments; the rest is one of them unless it is empty."""
    found = [segment for piece in pieces for segment in detector.feed(piece)]
    rest = detector.finish()
    return found + [rest] * bool(rest)


@pytest.mark.parametrize("number", range(11))
def test_published_plans_are_cut_as_published(number):
    plan, expected = SEGMENTS[number]
    skills = PUBLISHED[number][1]
    assert plan == PUBLISHED[number][0]
    assert segments(plan, skills) == expected
    assert detect(plan_detector(skills), [plan]) == expected
    assert detect(plan_detector(skills), list(plan)) == expected


@given(PLAN_TEXT, CUTS)
@example("l('mf(50)');mf(50)", [1])
@example("mf(od('x)'))", [])
@example("(mf(50)mf(", [])
@example("drop;dr}'dr;'", [3])
def test_any_split_gives_the_segments_of_the_whole_text(text, cuts):
    for skills in (TELLO, INDY7):
        expected = cut(text, ends(text, skills))
        assert segments(text, skills) == expected
        assert detect(plan_detector(skills), split(text, cuts)) == expected
        assert detect(plan_detector(skills), list(text)) == expected
        assert "".join(expected) == text


@given(PLAN_TEXT, CUTS)
def test_a_segment_comes_out_as_soon_as_it_is_complete(text, cuts):
    detector, fed, given_out = plan_detector(TELLO), "", ""
    for piece in split(text, cuts):
        fed += piece
        given_out += "".join(detector.feed(piece))
        assert given_out == fed[: max(ends(fed, TELLO), default=0)]


def test_long_names_end_segments_and_untimed_or_unknown_ones_do_not():
    plan = "move_forward(50);take_picture();iv('a');fly(3);xmf(50);mfx(50);mf(50)"
    assert segments(plan, TELLO) == [
        "move_forward(50)",
        ";take_picture();iv('a');fly(3);xmf(50);mfx(50);mf(50)",
    ]
    assert detect(plan_detector(TELLO), list(plan)) == segments(plan, TELLO)


@pytest.mark.parametrize("before", ["", ";", "x", "_", "é", " ", "x" * 40, "l('a');" * 9])
def test_names_of_any_length(before):
    name = "n" * MAX_NAME
    longest = replace(TELLO, skills=(replace(TELLO["mf"], long_name=name),))
    text = f"{before}{name}(50);tp()"
    expected = cut(text, ends(text, longest))
    assert (len(expected) == 2) is (before[-1:] not in ("x", "_"))
    for pieces in ([text], list(text), *([text[:i], text[i:]] for i in range(len(text)))):
        assert detect(plan_detector(longest), pieces) == expected


def test_rules_follow_the_skill_set():
    plan = "dv(1);?bt()>9{sp('A1')};np()"
    assert detect(plan_detector(ROVER), list(plan)) == ["dv(1)", ";?bt()>9{sp('A1')", "};np()"]


def test_a_detector_is_used_again_behind_finish():
    detector = plan_detector(TELLO)
    assert detector.feed("l('mf(") == []
    assert detector.finish() == "l('mf("
    assert detector.feed("mf(50)") == ["mf(50)"]
    assert detector.finish() == ""


class _Counting:
    """Counts the characters that searches and slices look at; stands in for a pattern."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self.pattern, self.seen, self.widest = pattern, 0, 0

    def search(self, text: str, position: int):
        match = self.pattern.search(text, position)
        self.widest = max(self.widest, len(text) - position)
        self.seen += (match.end() if match else len(text)) - position
        return match


class _Text(str):
    seen = 0

    def find(self, what: str, start: int = 0) -> int:
        place = super().find(what, start)
        _Text.seen += (len(self) if place < 0 else place + 1) - start
        return place

    def __getitem__(self, key: slice) -> str:
        part = super().__getitem__(key)
        _Text.seen += len(part)
        return part


@pytest.mark.parametrize("unit", ["l('", "x", "mf", "(", "mf(50);", "')", "mf('", "a_", " "])
@pytest.mark.parametrize("at_once", [1, 7, 1000])
def test_each_character_is_looked_at_a_bounded_number_of_times(monkeypatch, unit, at_once):
    patterns = [_Counting(segment._MARK), _Counting(segment._WORD_END)]
    monkeypatch.setattr(segment, "_MARK", patterns[0])
    monkeypatch.setattr(segment, "_WORD_END", patterns[1])
    monkeypatch.setattr(_Text, "seen", 0)
    detector = plan_detector(TELLO)
    text = unit * (20_000 // len(unit))
    for start in range(0, len(text), at_once):
        detector.feed(_Text(text[start : start + at_once]))
    assert patterns[1].widest <= MAX_NAME + 1  # it tries every place in there
    # A name before a bracket is read again, up to its longest; so is a word at the end of a text.
    looks = _Text.seen + sum(pattern.seen for pattern in patterns)
    assert looks <= 4 * len(text) + text.count("(") * (MAX_NAME + 2)


# ---- plain text ------------------------------------------------------------------------------


def sentences(text: str) -> list[str]:
    """Whole-text reference: behind . ! ? and closers, before a space."""
    result, start = [], 0
    for i, character in enumerate(text):
        if character.isspace():
            before = text[start:i].rstrip("\"')]’”")
            if before and before[-1] in ".!?":
                result.append(text[start:i])
                start = i
    return result + [text[start:]] * (start < len(text))


def paragraphs(text: str) -> list[str]:
    """Whole-text reference: blank lines, lines with text, the first blank line behind them."""
    one = re.compile(r"(?:[^\S\n]*\n)*(?:[^\n]*\S[^\n]*\n)+[^\S\n]*\n")
    result, start = [], 0
    while match := one.match(text, start):
        result.append(match[0])
        start = match.end()
    return result + [text[start:]] * (start < len(text))


@given(PROSE, CUTS)
@example('He said "Go." Then he left. Now', [9, 12, 13, 14])
def test_sentences_for_any_split(text, cuts):
    expected = sentences(text)
    assert detect(text_detector("sentence"), split(text, cuts)) == expected
    assert detect(text_detector("sentence"), list(text)) == expected
    assert "".join(expected) == text


def test_sentences_keep_decimals_and_closing_quotes():
    text = 'Fly 1.5 m. Is it "on?" Yes (it is.) No'
    assert detect(text_detector("sentence"), [text]) == [
        "Fly 1.5 m.",
        ' Is it "on?"',
        " Yes (it is.)",
        " No",
    ]


@given(PROSE, CUTS)
@example("a\nb \nc\n \nd", [])
def test_paragraphs_for_any_split(text, cuts):
    expected = paragraphs(text)
    assert detect(text_detector("paragraph"), split(text, cuts)) == expected
    assert detect(text_detector("paragraph"), list(text)) == expected
    assert "".join(expected) == text


def test_paragraphs_end_behind_the_first_blank_line():
    text = "\n\none\ntwo\n \nthree\n\n\nfour"
    assert detect(text_detector("paragraph"), list(text)) == [
        "\n\none\ntwo\n \n",
        "three\n\n",
        "\nfour",
    ]


# ---- registry --------------------------------------------------------------------------------


def test_detectors_by_name():
    assert plan_detector(TELLO).feed("mf(50)") == ["mf(50)"]
    assert text_detector("sentence").feed("A. ") == ["A."]
    assert text_detector("paragraph").feed("A\n\n") == ["A\n\n"]
    with pytest.raises(ValueError, match="'sentense' is unknown: did you mean 'sentence'?"):
        text_detector("sentense")
