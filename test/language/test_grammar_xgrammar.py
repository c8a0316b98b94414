"""The grammar in xgrammar: what it takes, and that every plan of it passes the plan checker."""

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plan_language import INDY7, KINDS, PUBLISHED, ROVER, TELLO

from timely_llm.language.grammar import longest_plan, plan_grammar
from timely_llm.language.parser import PlanError, parse
from timely_llm.language.segmenter import plan_detector
from timely_llm.language.skills import Bounds, SkillSet

xgrammar = pytest.importorskip("xgrammar")

BYTES = [bytes([i]) for i in range(256)]
# Longer tokens, as tokenizers have them: across the borders of calls, quotes and numbers.
MERGED = [b"mf(", b"(50)", b"');", b"('", b"==True{", b"->False", b"}->", b"};", b"cat", b"00",
          b"?iv('", b".5", b"_1=", b"&", b"red box", b");dr();", b"3{", b"')==", b"-",
          b"10"]  # fmt: skip


class Grammar:
    """A compiled grammar over a vocabulary of bytes, and texts of it."""

    def __init__(self, ebnf: str, vocabulary: list[bytes] = BYTES) -> None:
        self.vocabulary = vocabulary
        self.end = len(vocabulary)
        info = xgrammar.TokenizerInfo(
            [*vocabulary, b"<end>"],
            vocab_type=xgrammar.VocabType.RAW,
            stop_token_ids=[self.end],
        )
        compiler = xgrammar.GrammarCompiler(info, max_threads=1)
        self.compiled = compiler.compile_grammar(ebnf)
        self.mask = xgrammar.allocate_token_bitmask(1, self.end + 1)

    def matcher(self):
        return xgrammar.GrammarMatcher(self.compiled, terminate_without_stop_token=False)

    def allowed(self, matcher) -> list[int]:
        matcher.fill_next_token_bitmask(self.mask)
        words = [word & 0xFFFFFFFF for word in self.mask[0].tolist()]
        return [i for i in range(self.end + 1) if words[i // 32] >> (i % 32) & 1]

    def takes(self, text: str) -> bool:
        """Whether ``text`` is a whole text of the grammar, byte by byte."""
        matcher = self.matcher()
        if not all(matcher.accept_string(bytes([byte])) for byte in text.encode()):
            return False
        return self.end in self.allowed(matcher)

    def walk(self, rng: random.Random, weights: list[float]) -> str:
        """A text as a model with these token weights would write it."""
        matcher, text = self.matcher(), b""
        while True:
            allowed = self.allowed(matcher)
            assert allowed, f"dead end behind {text!r}"
            token = rng.choices(allowed, [weights[i] for i in allowed])[0]
            assert matcher.accept_token(token)
            if token == self.end:
                return text.decode()
            text += self.vocabulary[token]


GRAMMARS = {
    (kind, merged): Grammar(plan_grammar(skills), BYTES + MERGED * merged)
    for kind, skills in KINDS.items()
    for merged in (False, True)
}


def takes(skills: SkillSet, text: str) -> bool:
    return GRAMMARS[skills.kind, False].takes(text)


# ---- what it takes -----------------------------------------------------------------------------


@pytest.mark.parametrize("number", range(11))
def test_published_plans_are_in_the_grammar(number):
    plan, skills = PUBLISHED[number]
    assert takes(skills, plan)


TAKEN = """mf(20) mf(500); tu(1);tc(360) d(0.1);d(60);d(59.9) l('a');tp();rp() ?iv('a'){mf(50)}
    ?iv('a')->{mf(50);};mf(60) ?iv('a')&_1>3|_2!='x'{tp() ?od('a')>=12.25{tp()}
    ?sa('x')!=False{_1=sa('x');g(_1)} ?_1{tp()} ?_1==True{tp()} 20{20{20{tp()}}} 1{tp()}
    _1=od('a');_1=_1*2;_2=_1;_3=True;_9=9999;_1=0.25 ->True ->_1 ->'done' ->od('a'); ->12"""
REFUSED = """; mf(19) mf(501) mf(050) mf(_1) mf(50.0) fly(50) d(0) d(0.05) d(60.1) d(00.1) tu(0)
    tu(361) l('') l('it"s') l('é') l('\\') 21{tp()} 0{tp()} 2{2{2{2{tp()}}}} ?mf(50){tp()}
    ?iv('a'){} ?iv('a')tp() _0=1 _1=10000 _1=9999.5 mf(50 tp()tp() ->True;tp() mf(50)}"""


@pytest.mark.parametrize("plan", [*TAKEN.split(), "tp();" * 24, "l('a b')"])
def test_takes(plan):
    assert takes(TELLO, plan)
    parse(plan, TELLO)


LONG = [f"l('{'x' * 61}')", f"g('{'x' * 33}')", "tp();" * 25]


@pytest.mark.parametrize("plan", [*REFUSED.split(), *LONG, "", "mf(50) ;tp()"])
def test_refuses(plan):
    assert not takes(TELLO, plan)


def test_a_kind_of_ones_own():
    for plan in ("dv(-2.5)", "dv(12.3)", "dv(0);st(-35,0.5)", "st(35,1)", "sp('A12yy')", "sp(_3)",
                 "?bt()<50{np()}", "?am('ok?')==True{sp('C0')}", "5{dv(1)}"):  # fmt: skip
        assert takes(ROVER, plan), plan
        parse(plan, ROVER)
    for plan in ("dv(-2.6)", "dv(12.4)", "st(36,1)", "st(0)", "st(0,1.1)", "sp('D1')", "sp('A1xx')",
                 "sp('A123')", "?bt(){tp()}", "6{dv(1)}", "_4=1", "_1=51", "dv(1.25)"):  # fmt: skip
        assert not takes(ROVER, plan), plan


# ---- every plan of it passes -------------------------------------------------------------------


def check_walk(skills: SkillSet, text: str) -> None:
    parse(text, skills)
    assert len(text) <= longest_plan(skills)
    detector = plan_detector(skills)
    assert "".join([*detector.feed(text), detector.finish()]) == text


@pytest.mark.parametrize(("kind", "merged"), GRAMMARS)
@settings(max_examples=40)
@given(seed=st.integers(0, 2**32), spread=st.sampled_from([0.0, 1.0, 3.0]))
def test_whatever_weights_write_passes(kind, merged, seed, spread):
    compiled, rng = GRAMMARS[kind, merged], random.Random(seed)
    weights = [rng.lognormvariate(0, spread) for _ in range(compiled.end + 1)]
    check_walk(KINDS[kind], compiled.walk(rng, weights))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("avoided", ["<end>", "}", "]", "'", ")", ";"])
def test_plans_end_even_if_the_model_never_wants_to(kind, avoided):
    compiled, rng = GRAMMARS[kind, False], random.Random(avoided)
    weights = [1.0] * (compiled.end + 1)
    weights[compiled.end] = 1e-9
    if avoided != "<end>":
        weights[ord(avoided)] = 1e-9
    for _ in range(3):
        check_walk(KINDS[kind], compiled.walk(rng, weights))


BOUNDS = st.builds(
    Bounds,
    max_nesting=st.integers(0, 3),
    max_statements=st.integers(1, 6),
    max_string=st.integers(1, 12),
    max_loop=st.integers(1, 120),
    max_variables=st.integers(1, 9),
    max_number=st.integers(1, 1200),
)


@settings(max_examples=30)
@given(bounds=BOUNDS, kind=st.sampled_from(["tello", "indy7"]), seed=st.integers(0, 2**32))
def test_any_bounds_hold(bounds, kind, seed):
    skills = replace(KINDS[kind], bounds=bounds)
    shorter = tuple(
        replace(skill, arguments=tuple(
            replace(a, maximum=min(a.maximum, bounds.max_string)) if a.type == "str" else a
            for a in skill.arguments
        ))
        for skill in skills.skills
    )  # fmt: skip
    skills = replace(skills, skills=shorter)
    compiled, rng = Grammar(plan_grammar(skills)), random.Random(seed)
    for _ in range(3):
        text = compiled.walk(rng, [1.0] * (compiled.end + 1))
        check_walk(skills, text)


def test_the_longest_plan_is_one():
    """A plan of exactly that length is in the grammar: the bound is not a guess."""
    small = replace(INDY7, bounds=replace(INDY7.bounds, max_statements=2, max_nesting=0))
    text = f"l('{'x' * 60}');l('{'x' * 60}');"
    assert longest_plan(small) == len(text)
    assert Grammar(plan_grammar(small)).takes(text)


def test_a_plan_outside_of_the_grammar_may_still_be_legal():
    """The checker takes more than models are held to: spaces, arithmetic, long names."""
    plan = "_1 = od('a');\nmf(_1 * 2 - 10)"
    parse(plan, TELLO)
    assert not takes(TELLO, plan)
    with pytest.raises(PlanError):
        parse("mf(19)", TELLO)
