"""The grammar in xgrammar: what it takes, and that what the checker reads along ends."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plan_language import KINDS, PUBLISHED, ROVER, TELLO

from timely_llm.language.grammar import plan_grammar
from timely_llm.language.parser import PlanError, parse
from timely_llm.language.segmenter import PlanSegmenter, plan_detector
from timely_llm.language.skills import SkillSet

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

    def walk(self, skills: SkillSet, rng: random.Random, weights: list[float]) -> str | None:
        """A plan as a model with these token weights would write it; None: it was refused."""
        matcher, segmenter, text, told = self.matcher(), PlanSegmenter(skills), b"", 0
        while True:
            allowed = self.allowed(matcher)
            assert allowed, f"dead end behind {text!r}"
            token = rng.choices(allowed, [weights[i] for i in allowed])[0]
            assert matcher.accept_token(token)
            text += b"" if token == self.end else self.vocabulary[token]
            shown = text.decode(errors="ignore")
            try:
                list(segmenter.feed(shown[told:], token == self.end))
            except PlanError:
                return None
            assert len(shown) <= skills.bounds.max_plan_chars
            told = len(shown)
            if token == self.end:
                return shown


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
    _1=od('a');_1=_1*2;_2=_1;_3=True;_9=9999;_1=0.25 ->True ->_1 ->'done' ->od('a'); ->12
    refuse('far') ?iv('a'){refuse("no")} tp();refuse('a');
    mf(050) mf(+50) mf(50.0) l('é') l("it's") mf(_1)"""
REFUSED = """; fly(50) ?mf(50){tp()} ?iv('a'){} ?iv('a')tp() mf(50 tp()tp() ->True;tp() mf(50)}
    l('it's') l(one) mf(-) mf(,) mf(50,) =3 tp()} refuse refuse() refuse(_1) refuse(5)
    refuse('a','b') _1=refuse('a') refuse('a');tp()"""
# No plan either, but a value that a model means: to be refused by the checker, never changed.
PASSED_ON = """mf(19) mf(501) mf(1500) mf(-50) mf(50.5) mf(5e2) mf(50cm) mf(.5) mf(5_0) mf(1,500)
    mf() d(0) d(0.05) d(60.1) tu(0) tu(361) l('') 21{tp()} 0{tp()} -2{tp()} 2.5{tp()} _0=1 _10=1
    _1=10000 _1=9999.5 mf('50') mf(True) l('\\') refuse('') 2{2{2{2{tp()}}}}"""


SPACED = ["l('a b')", "tp(); tp()\n", "?iv('a'){ tp();\nmf(50) } l('a')", "sa('a');\n->True; "]


@pytest.mark.parametrize("plan", [*TAKEN.split(), "tp();" * 24, *SPACED])
def test_takes(plan):
    assert takes(TELLO, plan)
    parse(plan, TELLO)


LONG = [f"l('{'x' * 61}')", f"g('{'x' * 33}')", "tp();" * 25, f"mf({'1' * 41})", "2{" * 40 + "tp()"]


@pytest.mark.parametrize("plan", [*PASSED_ON.split(), *LONG])
def test_passes_on_what_the_checker_refuses(plan):
    assert takes(TELLO, plan)
    with pytest.raises(PlanError):
        parse(plan, TELLO)


@pytest.mark.parametrize("plan", [*REFUSED.split(), "", "a ;b"])
def test_refuses(plan):
    assert not takes(TELLO, plan)


def test_a_kind_of_ones_own():
    for plan in ("dv(-2.5)", "dv(12.3)", "dv(0);st(-35,0.5)", "st(35,1)", "sp('A12yy')", "sp(_3)",
                 "?bt()<50{np()}", "?am('ok?')==True{sp('C0')}", "5{dv(1)}"):  # fmt: skip
        assert takes(ROVER, plan), plan
        parse(plan, ROVER)
    for plan in ("dv(-2.6)", "dv(12.4)", "st(36,1)", "st(0)", "st(0,1.1)", "sp('D1')", "sp('A1xx')",
                 "sp('A123')", "6{dv(1)}", "_4=1", "_1=51"):  # fmt: skip
        assert takes(ROVER, plan), plan
        with pytest.raises(PlanError):
            parse(plan, ROVER)


# ---- a value is never reshaped -----------------------------------------------------------------

NUMBERS = st.from_regex(
    r"[-+]?([0-9]{1,60}(\.[0-9]{0,60})?|\.[0-9]{1,9})(e[0-9]{1,3}|cm|_0)?", fullmatch=True
)
STRINGS = st.text(st.characters(exclude_characters="'", codec="utf-8"), max_size=80)
AROUND = ["mf({})", "d({})", "{}{{tp()}}", "_1={}", "?_1>{}{{tp()}}", "->{}"]
PIECES = st.lists(st.text("0123456789.-+e'(),;mfl abé", min_size=2, max_size=4), max_size=12)


def preferring(wanted: str, compiled: Grammar) -> str | None:
    """What a model writes that wants ``wanted`` and nothing else: always the longest token on the
    way there; once it was made to leave the way, whatever ends the plan soonest. None: refused."""
    matcher, segmenter, written, told = compiled.matcher(), PlanSegmenter(TELLO), b"", 0
    while True:
        allowed = compiled.allowed(matcher)
        astray = not wanted.encode().startswith(written)
        rest = b"" if astray else wanted.encode()[len(written) :]
        on_way = [
            i for i in allowed if i < compiled.end and rest.startswith(compiled.vocabulary[i])
        ]
        if on_way:
            token = max(on_way, key=lambda i: len(compiled.vocabulary[i]))
        elif compiled.end in allowed:
            token = compiled.end
        else:
            token = next((i for i in b"')};0a" if i in allowed), allowed[0])
        assert matcher.accept_token(token)
        written += b"" if token == compiled.end else compiled.vocabulary[token]
        shown = written.decode(errors="ignore")
        try:
            list(segmenter.feed(shown[told:], token == compiled.end))
        except PlanError:
            return None
        told = len(shown)
        if token == compiled.end:
            return shown


def exact_or_refused(wanted: str, pieces: list[str]) -> None:
    compiled = Grammar(plan_grammar(TELLO), BYTES + [piece.encode() for piece in pieces])
    assert preferring(wanted, compiled) in (wanted, None)


@settings(max_examples=60, deadline=None)
@given(number=NUMBERS, pieces=PIECES, plan=st.sampled_from(AROUND))
def test_a_number_is_written_whole_or_refused(number, pieces, plan):
    exact_or_refused(plan.format(number), pieces)


@settings(max_examples=60, deadline=None)
@given(
    text=STRINGS, pieces=PIECES, plan=st.sampled_from(["l('{}')", "?_1=='{}'{{tp()}}", "->'{}'"])
)
def test_a_string_is_written_whole_or_refused(text, pieces, plan):
    exact_or_refused(plan.format(text), pieces)


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ("mf(1500)", "mf: distance is 1500 cm: must be 20 to 500 cm"),
        ("tc(792)", "tc: angle is 792 deg: must be 1 to 360 deg"),
        ("mu(5)", "mu: distance is 5 cm: must be 20 to 500 cm"),
    ],
)
def test_what_is_out_of_limits_is_refused_with_skill_value_and_limit(wanted, words):
    assert takes(TELLO, wanted)
    assert preferring(wanted, GRAMMARS["tello", False]) is None
    with pytest.raises(PlanError, match=words):
        parse(wanted, TELLO)


# ---- every plan of it ends, and is cut into what it was -----------------------------------------


def check_walk(skills: SkillSet, text: str | None) -> None:
    if text is not None:
        parse(text, skills)
        detector = plan_detector(skills)
        assert "".join([*detector.feed(text), detector.finish()]) == text


@pytest.mark.parametrize(("kind", "merged"), GRAMMARS)
@settings(max_examples=40)
@given(seed=st.integers(0, 2**32), spread=st.sampled_from([0.0, 1.0, 3.0]))
def test_whatever_weights_write_ends(kind, merged, seed, spread):
    compiled, rng = GRAMMARS[kind, merged], random.Random(seed)
    weights = [rng.lognormvariate(0, spread) for _ in range(compiled.end + 1)]
    check_walk(KINDS[kind], compiled.walk(KINDS[kind], rng, weights))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("avoided", ["<end>", "}", "]", "'", ")", ";"])
def test_plans_end_even_if_the_model_never_wants_to(kind, avoided):
    compiled, rng = GRAMMARS[kind, False], random.Random(avoided)
    weights = [1.0] * (compiled.end + 1)
    weights[compiled.end] = 1e-9
    if avoided != "<end>":
        weights[ord(avoided)] = 1e-9
    for _ in range(3):
        check_walk(KINDS[kind], compiled.walk(KINDS[kind], rng, weights))


def test_a_plan_outside_of_the_grammar_may_still_be_legal():
    """The checker takes more than models are held to: spaces, arithmetic, long names."""
    plan = "_1 = od('a');\nmf(_1 * 2 - 10)"
    parse(plan, TELLO)
    assert not takes(TELLO, plan)
    with pytest.raises(PlanError):
        parse("mf(19)", TELLO)
