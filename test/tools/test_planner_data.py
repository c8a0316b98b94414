"""The bundled planner's data: the split is disjoint, all plans are legal, tokens keep the text."""

import random
import re
from collections import Counter

import pytest
import yaml
from tokenizers import Tokenizer

from timely_llm.language.parser import parse
from timely_llm.prompts.template import FILE_NAME, PromptTemplate
from tools.planner import amounts, arm, dataset, drone, phrases
from tools.planner.draw import Draw, Exhausted, Pair, has_held_out_noun, is_held_out, is_new

MODEL = dataset.ROOT / "models" / "tiny_planner"
SIZES = {"tello": 34, "indy7": 18, "rover": 12}


@pytest.fixture(scope="module")
def skills():
    return dataset.load_skills()


@pytest.fixture(scope="module")
def held_out(skills):
    return dataset.held_out(skills, 2000)


@pytest.fixture(scope="module")
def trained(skills):
    """(skills, pair) of 60 training batches, without the published tasks."""
    stream = dataset.batches(skills, random.Random(7), SIZES, 0.4)
    batches = [next(stream) for _ in range(60)]
    return [
        (chosen, pair)
        for batch in batches
        for chosen, pairs in batch
        for pair in pairs
        if pair.family != "published"
    ]


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.from_file(str(MODEL / "tokenizer.json"))


@pytest.fixture(scope="module")
def template():
    return PromptTemplate.from_file(MODEL / FILE_NAME)


def test_every_pair_has_combinations_and_all_are_on_its_side(held_out, trained):
    assert all(e.pair.keys and all(is_held_out(*key) for key in e.pair.keys) for e in held_out)
    assert all(pair.keys and not any(is_held_out(*k) for k in pair.keys) for _, pair in trained)


def test_no_trained_combination_or_instruction_is_held_out(held_out, trained):
    keys = {key for example in held_out for key in example.pair.keys}
    assert not keys & {key for _, pair in trained for key in pair.keys}
    instructions = {example.pair.instruction.lower() for example in held_out}
    assert len(instructions) == 2000
    assert not instructions & {pair.instruction.lower() for _, pair in trained}


def test_published_instructions_are_not_held_out(held_out):
    published = {pair.instruction.lower() for _, pair in dataset.published()}
    assert len(published) == 11
    assert not published & {example.pair.instruction.lower() for example in held_out}


def test_training_never_shows_a_reserved_word(trained):
    named = [pair for _, pair in trained if pair.family != "refusal"]  # there it is a verb
    values = [value for pair in named for _, value in pair.keys]
    names = [value for value in values if value in dataset.phrases.words.THINGS]
    assert len(names) > 500
    assert not [name for name in names if has_held_out_noun(name)]


def test_every_held_out_name_was_trained(held_out):
    pairs = [example.pair for example in held_out if example.pair.family != "refusal"]
    values = [value for pair in pairs for _, value in pair.keys]
    names = [value for value in values if value in dataset.phrases.words.THINGS]
    assert len(names) > 500
    assert not [name for name in names if is_new(name)]


def test_new_names_are_never_trained_and_in_the_plans(skills):
    examples = dataset.held_out(skills, 200, new_names=True)
    for example in examples:
        names = [value for _, value in example.pair.keys if value in example.pair.plan]
        assert any(is_new(name) for name in names)
    assert is_new("red glorp") and not is_new("red cup")


def test_every_plan_passes_the_checker(held_out, trained):
    for example in held_out:
        parse(example.pair.plan, example.skills)
    for chosen, pair in trained:
        parse(pair.plan, chosen)


def test_plans_call_only_skills_of_the_robot(held_out, trained):
    assert all(set(e.pair.needs) <= set(e.skills.names) for e in held_out)
    assert all(set(pair.needs) <= set(chosen.names) for chosen, pair in trained)


def test_one_prompt_has_one_plan(skills, template):
    plans: dict[str, str] = {}
    stream = dataset.batches(skills, random.Random(3), SIZES, 0.0)
    for _ in range(150):
        for chosen, pairs in next(stream):
            for pair in pairs:
                prompt = chosen.kind + template.user(chosen, pair.scene, pair.instruction)
                assert plans.setdefault(prompt, pair.plan) == pair.plan


def test_held_out_set_is_the_same_each_time_and_covers_the_families(skills, held_out):
    again = dataset.held_out(skills, 50)
    assert [e.pair for e in again] == [e.pair for e in held_out[:50]]
    families = Counter(example.pair.family for example in held_out)
    expected = {"move", "turn", "wait", "picture", "say", "steps", "find", "go to", "question",
                "condition", "comparison", "loop", "figure", "move and look", "measure",
                "open question", "abstract", "replan", "refusal", "out of limits",
                "missing skill", "pick and place", "pick", "put down", "pick if seen",
                "square", "there and back", "correction", "search", "tour", "photos", "polygon",
                "far move", "language", "hold", "tower", "count", "retry"}  # fmt: skip
    assert expected <= set(families)


def test_missing_skill_becomes_a_refusal(skills):
    pair = Pair("move", "go forward 50 cm", "[]", "mf(50);")
    names = skills["tello"].names
    assert dataset.fit(pair, names) == pair
    refused = dataset.fit(pair, [name for name in names if name != "mf"])
    assert refused.plan == "refuse('I cannot move forward')"
    place = Pair("pick and place", "", "", arm.place_plan([("cup", "on", "tray")]))
    assert dataset.fit(place, names).plan == "refuse('I cannot pick things up')"


def test_skills_are_found_outside_of_strings_only():
    assert Pair("", "", "", "?s('mf(20)')==True{g('x')}->p('d(1)')").needs == ("s", "g", "p")
    assert Pair("", "", "", "refuse('I cannot tp()')").needs == ()


def test_placing_gives_the_published_plans_but_for_what_they_alone_do():
    plans = {pair.instruction[:24]: pair.plan for _, pair in dataset.published()}
    fruit = [("apple", "near", "carrot"), ("tomato", "near", "cucumber"),
             ("orange", "near", "lemon")]  # fmt: skip
    assert arm.place_plan(fruit) == plans["[A] Pick up the apple an"]
    desk = [("pencil", "in", "pen holder"), ("eraser", "near", "pencil"),
            ("notebook", "on", "desk")]  # fmt: skip
    published = plans["[A] Pick up the pencil a"].replace("d(0.1);", "")
    assert arm.place_plan(desk).replace("gt('pen holder');", "") == published
    stacked = [("red box", "on", "blue box"), ("green box", "on", "red box")]
    first = arm.place_plan(stacked[:1])
    published = plans["[A] Pick up the red box "]
    assert published == f"{first[:-1]}{arm.place_plan(stacked[1:])};"


@pytest.mark.parametrize(
    ("threat", "motion", "call"),
    [("approach", "mf", "mr(50)"), ("catch", "ml", "mu(50)"), ("pass", "mf", "d(3)")],
)
def test_ways_out_are_those_of_the_published_replans(threat, motion, call):
    assert drone.way_out(threat, motion) == call
    plans = [pair.plan for _, pair in dataset.published()]
    assert f"{call};{motion}(50);" in plans


def drawn(skills, count, held_out=False):
    """(kind, pair) of whole skill sets, in equal parts of the kinds."""
    for kind in dataset.KINDS:
        draw = Draw(random.Random(11), held_out, invented=0.3)
        for _ in range(count // len(dataset.KINDS)):
            yield kind, dataset.draw_pair(kind, skills[kind].names, draw)


def test_no_judged_instruction_is_drawn(skills):
    """Of neither half: letters alone count, and a number in words is no letter."""

    def letters(text):
        words = re.findall(r"[^\W\d_]+", text.lower())
        return "".join(word for word in words if word not in amounts.NUMBERS)

    files = sorted((dataset.ROOT / "config/instructions").glob("*.yaml"))
    rows = [row for file in files for row in yaml.safe_load(file.read_text())["instructions"]]
    asked = {letters(row["instruction"]) for row in rows}
    assert len(files) == 2 and len(asked) > 300
    texts = [pair.instruction for _, pair in drawn(skills, 20_000)]
    texts += [pair.instruction for _, pair in drawn(skills, 3_000, held_out=True)]
    for text in texts:
        plain = text[4:] if text[:4] in ("[A] ", "[Q] ", "[E] ") else text
        assert letters(plain) not in asked, text


def test_refusals_are_the_statement_and_end_the_plan(skills):
    refusals = [pair for _, pair in drawn(skills, 6000) if "refuse" in pair.plan]
    assert {"refusal", "missing skill", "out of limits"} <= {pair.family for pair in refusals}
    for pair in refusals:
        assert re.fullmatch(r"refuse\('[^'\"]{1,60}'\)", pair.plan), pair


def test_moves_keep_to_the_limits_of_their_kind(skills):
    shortest = {"tello": 20, "rover": 5}
    farthest = {"mu": phrases.HIGHEST, "md": phrases.LOWEST}
    for kind, pair in drawn(skills, 9000):
        if pair.family not in ("move", "far move", "steps"):
            continue
        for skill, size in re.findall(r"\b(m[fbludr])\((\d+)\)", pair.plan):
            assert int(size) <= farthest.get(skill, 500), pair
            assert int(size) >= shortest.get(kind, 20) or pair.family == "far move", pair


def test_a_step_must_be_at_least_the_shortest_move(skills):
    """Also the second call of a move in two."""
    for kind, least in (("tello", 20), ("rover", 5)):
        body = phrases.FLYING if kind == "tello" else phrases.ROLLING
        draw = Draw(random.Random(1))
        for _ in range(200):
            sizes = [int(size) for size in re.findall(r"\d+", phrases.far_move(draw, body)[1])]
            assert sizes[0] == 500 and least <= sizes[1] <= 500


@pytest.mark.parametrize(
    ("centimetres", "words"),
    [(250, "two and a half metres"), (122, "4 feet"), (130, "one point three metres"),
     (35, "thirty-five centimetres"), (75, "three quarters of a metre"), (50, "half a metre")],
)  # fmt: skip
def test_distances_are_said_in_many_ways(centimetres, words):
    draw = Draw(random.Random(2))
    assert words in {amounts.distance(draw, centimetres) for _ in range(3000)}


def test_every_way_of_saying_a_distance_is_that_distance():
    """Numbers in digits come out again, whatever the unit."""
    size = {"cm": 1, "cms": 1, "m": 100, "ft": 30.48, "in": 2.54, "inches": 2.54, "feet": 30.48}
    draw = Draw(random.Random(3))
    for _ in range(5000):
        centimetres = phrases.some_distance(draw, 5)
        text = amounts.distance(draw, centimetres)
        if match := re.fullmatch(r"([\d.]+) ?(\w+)", text):
            unit = size.get(match[2]) or (1 if match[2].startswith("cent") else 0)
            if match[2].startswith("met"):
                unit = 100
            elif match[2] in ("foot", "inch", "yards"):
                unit = {"foot": 30.48, "inch": 2.54, "yards": 91.44}[match[2]]
            assert round(float(match[1]) * unit) == centimetres, (text, centimetres)


def test_typing_errors_keep_names_and_texts(skills):
    for _, pair in drawn(skills, 6000):
        for text in re.findall(r"'([^']*)'", pair.plan):
            if pair.family in ("move and look", "find", "say", "pick and place", "hold", "tour"):
                assert text.lower() in pair.instruction.lower(), pair


def test_a_draw_stays_on_its_side_or_says_so():
    draw = Draw(random.Random(1), held_out=True)
    value = draw.value("go to {}", lambda: str(draw.rng.random()))
    assert draw.keys == [("go to {}", value)]
    assert is_held_out("go to {}", value)
    trained = next(str(i) for i in range(100) if not is_held_out("go to {}", str(i)))
    with pytest.raises(Exhausted):
        draw.value("go to {}", lambda: trained)


def test_tokens_give_the_text_back(held_out, tokenizer, template):
    for example in held_out[:500]:
        pair = example.pair
        user = template.user(example.skills, pair.scene, pair.instruction)
        for text in (user, pair.plan, template.system(example.skills)):
            assert tokenizer.decode(tokenizer.encode(text).ids) == text
    for text in ("Größe 90°\tx", "say 'don’t'", "日本語 ) ( {}", "x" * 2000, "(" * 2000):
        assert tokenizer.decode(tokenizer.encode(text).ids) == text


def test_prompts_tokenize_as_in_training(held_out, tokenizer, template):
    """The fixed part's tokens, then the goal's, then the plan's: borders never merge."""
    for example in held_out[:500]:
        pair = example.pair
        texts = (
            template.system(example.skills),
            template.user(example.skills, pair.scene, pair.instruction),
            pair.plan,
        )
        parts = [tokenizer.encode(text).ids for text in texts]
        assert tokenizer.encode("".join(texts)).ids == sum(parts, [])


def test_a_closing_parenthesis_ends_its_token(tokenizer):
    texts = tokenizer.get_vocab()
    assert not [text for text in texts if ")" in text[:-1]]


def test_prompt_keeps_the_names_of_a_scene_and_lowers_the_instruction(skills, template):
    scene = "[bed_1 x:0.48 y:0.55 width:0.49 height:0.91, red_box x:0.1 y:0.2 width:0.3 height:0.4]"
    text = template.user(skills["tello"], scene, "  Find\nthe  CAT ")
    assert text == "bed_1 red_box | find the cat\n"
    assert template.user(skills["tello"], "[]", "up") == " | up\n"
