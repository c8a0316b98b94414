"""Regular expressions of skill files: those that could take long are refused."""

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from timely_llm.language.patterns import MAX_WAYS, Pattern, PatternError

# ---- regular expressions ---------------------------------------------------------------------

SAFE = r"""abc [a-z]{1,20} (a|b){1,10} \d{1,3}(x|yy)? ^A[0-9]$ [^a]b a{3}b? \w\s\S [\d_]{2} .{1,60}
    (?:ab){2,4} [\]^\-a-c] a|bc|def [éü] é"""
UNSAFE = {
    "(a+)+": "could take exponential time: an endless repeat inside a repeat",
    "(a*)*b": "could take exponential time: an endless repeat inside a repeat",
    "(a|a)*": "could take exponential time: an endless repeat inside a repeat",
    "(a|b|ab)*c": "could take exponential time: an endless repeat inside a repeat",
    "(a{1,9}){1,9}": "could take exponential time: more than 10000 ways to match one text",
    "(a|a){1,60}": "could take exponential time: more than 10000 ways to match one text",
    "(a?){60}": "could take exponential time: more than 10000 ways to match one text",
    "a?" * 20: "could take exponential time: more than 10000 ways to match one text",
    "a+": "is unbounded: write {m,n} for * and +",
    "a{1,}": "is unbounded: write {m,n} for * and +",
    ".*": "is unbounded: write {m,n} for * and +",
    "a{1,20000}": "repeats up to 20000 times: at most 10000",
    "(a": "is not a regular expression: missing ), unterminated subpattern at position 0",
    r"(a)\1": "uses groupref, which is not supported",
    "(?=a)b": "uses assert, which is not supported",
    "(?i)a": "sets flags, which is not supported",
    "(?i:a)": "uses subpattern, which is not supported",
    "a*?": "uses min_repeat, which is not supported",
    "a^b": "uses at, which is not supported",
    r"a\b": "uses at, which is not supported",
}


@pytest.mark.parametrize("text", SAFE.split())
def test_safe_patterns_are_taken(text):
    assert Pattern(text).ways <= MAX_WAYS


@pytest.mark.parametrize("text", UNSAFE)
def test_unsafe_patterns_are_refused(text):
    with pytest.raises(PatternError, match=re.escape(UNSAFE[text])):
        Pattern(text)


def tries(node, text: str, position: int) -> list[int]:
    """All ends of all ways in which a backtracking matcher could match from ``position``."""
    kind, *parts = node
    if kind == "text":
        return [position + len(parts[0])] if text.startswith(parts[0], position) else []
    if kind == "or":
        return [end for part in parts for end in tries(part, text, position)]
    if kind == "then":
        return [
            end for first in tries(parts[0], text, position) for end in tries(parts[1], text, first)
        ]
    low, high, inner = parts
    found, ends = [], [position]
    for count in range(high + 1):
        found += ends if count >= low else []
        ends = [end for start in ends for end in tries(inner, text, start)]
    return found


REGEX_TREES = st.recursive(
    st.sampled_from([("text", "a"), ("text", "b"), ("text", "ab"), ("text", "aa")]),
    lambda inner: (
        st.tuples(st.just("or"), inner, inner)
        | st.tuples(st.just("then"), inner, inner)
        | st.tuples(st.just("repeat"), st.integers(0, 2), st.integers(2, 3), inner)
    ),
    max_leaves=5,
)


def written(node) -> str:
    kind, *parts = node
    if kind == "text":
        return parts[0]
    if kind == "or":
        return f"({written(parts[0])}|{written(parts[1])})"
    if kind == "then":
        return written(parts[0]) + written(parts[1])
    return f"({written(parts[2])}){{{parts[0]},{parts[1]}}}"


@given(REGEX_TREES, st.text("ab", max_size=12))
def test_ways_bound_what_a_backtracking_matcher_tries(tree, text):
    try:
        pattern = Pattern(written(tree))
    except PatternError as error:
        assume("exponential" in str(error))
        return
    ends = tries(tree, text, 0)
    assert len(ends) <= pattern.ways
    assert all(pattern.shortest <= end <= pattern.longest for end in ends)
