"""The grammar as text: finite, and exact in its numbers."""

import re

from hypothesis import given
from hypothesis import strategies as st
from plan_language import KINDS, TELLO

from timely_llm.language.grammar import integers, longest_plan, plan_grammar, tenths

# ---- numbers -----------------------------------------------------------------------------------

LIMITS = st.tuples(st.integers(-1200, 1200), st.integers(0, 2400)).map(lambda t: (t[0], sum(t)))


def as_regex(ebnf: str) -> re.Pattern[str]:
    """Number rules use only literals, digit classes, choices and sequences."""
    return re.compile(re.sub(r'"([^"]*)"', lambda m: re.escape(m[1]), ebnf).replace(" ", ""))


@given(LIMITS)
def test_whole_numbers_are_exactly_those_within_the_limits(limits):
    low, high = limits
    rule = integers(low, high)
    pattern = as_regex(rule.ebnf)
    for number in range(low - 15, high + 16):
        assert bool(pattern.fullmatch(str(number))) == (low <= number <= high)
    assert not any(pattern.fullmatch(text) for text in ("", "-0", "01", "1.0", "+1", "00"))
    assert rule.longest == max(len(str(low)), len(str(high)), *(len(str(n)) for n in limits))


@given(LIMITS)
def test_tenths_are_exactly_those_within_the_limits(limits):
    low, high = limits
    rule = tenths(low / 10, high / 10)
    pattern = as_regex(rule.ebnf)
    longest = 0
    for number in range(low - 15, high + 16):
        sign, (whole, tenth) = "-" * (number < 0), divmod(abs(number), 10)
        texts = [f"{sign}{whole}.{tenth}"] + [f"{sign}{whole}"] * (tenth == 0)
        for text in texts:
            inside = low <= number <= high
            assert bool(pattern.fullmatch(text)) == inside, text
            longest = max(longest, len(text) * inside)
    assert rule.longest == longest


# ---- how long ----------------------------------------------------------------------------------


def test_longest_plans_are_known_and_within_the_bounds():
    assert {kind: longest_plan(skills) for kind, skills in KINDS.items()} == {
        "tello": 1602,
        "indy7": 1584,
        "rover": 285,
    }
    for skills in KINDS.values():
        assert longest_plan(skills) <= skills.bounds.max_plan_chars


def test_nothing_recurses():
    rules = dict(line.split(" ::= ", 1) for line in plan_grammar(TELLO).splitlines())
    words = {name: set(re.findall(r"\b[a-z]\w*\b", re.sub(r'"[^"]*"|\[[^]]*\]', "", text)))
             for name, text in rules.items()}  # fmt: skip
    done: set[str] = set()
    while len(done) < len(rules):
        ready = {name for name in rules if name not in done and words[name] & set(rules) <= done}
        assert ready, "a rule needs itself"
        done |= ready
