"""Single steps as a person says them: moves, turns, waits, pictures, spoken texts.

Each function draws one step and gives (words, plan text). The numbers' words become the skills'
units here: cm, degrees, seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tools.planner import amounts, words
from tools.planner.draw import Draw

Step = tuple[str, str]

DEFAULT_MOVE = 40  # cm, where no distance is said
SMALL_MOVE = 20  # cm, "a bit"
SMALL_TURN = 20  # degrees
LONGEST = 500  # cm, of one move
HIGHEST, LOWEST = 200, 150  # cm, moves up and down that stay within the fence
OPPOSITE = {"mf": "mb", "mb": "mf", "ml": "mr", "mr": "ml", "mu": "md", "md": "mu"}


@dataclass(frozen=True, slots=True)
class Body:
    """How a kind moves: its moves, verbs for them, and limits."""

    moves: tuple[str, ...]
    verbs: tuple[str, ...]
    turning: tuple[str, ...]
    shortest: int  # cm
    least_angle: int  # degrees


FLYING = Body(
    ("mf", "mb", "ml", "mr", "mu", "md"),
    ("go", "go", "move", "move", "fly", "fly", "head", "drift", "glide", "float", "travel", "shift",
     "scoot", "slide", "pop", "nudge yourself", "hop", "inch", "ease", "come", "get",
     "bring yourself", "take yourself", "shuffle", "dart", "zip", "edge", "cruise"),
    ("turn", "turn", "rotate", "spin", "yaw", "pivot", "swing", "twist", "swivel", "turn yourself",
     "rotate yourself", "spin yourself", "swing round"),
    20, 1,
)  # fmt: skip
ROLLING = Body(
    ("mf", "mb"),
    ("go", "go", "move", "move", "drive", "drive", "roll", "travel", "head", "creep", "inch",
     "crawl", "trundle", "scoot", "run", "nudge yourself", "ease", "come", "get", "wheel", "motor",
     "edge", "cruise", "push yourself"),
    ("turn", "turn", "rotate", "spin", "pivot", "swing", "twist", "swivel", "turn yourself",
     "rotate yourself", "steer", "wheel round", "swing round"),
    5, 5,
)  # fmt: skip
_WAYS = {
    "mf": ("forward", "forward", "forwards", "ahead", "straight ahead", "straight on", "onward",
           "on",
           "to the front", "further forward", "straight forward", "in a straight line ahead"),
    "mb": ("back", "back", "backwards", "backward", "to the rear", "further back", "straight back",
           "in reverse"),
    "ml": ("left", "to the left", "to your left", "leftwards", "over to the left",
           "sideways to the left", "to the left-hand side", "further left", "over to your left"),
    "mr": ("right", "to the right", "to your right", "rightwards", "over to the right",
           "sideways to the right", "to the right-hand side", "further right",
           "over to your right"),
    "mu": ("up", "up", "upwards", "higher", "further up", "straight up", "upward", "higher up"),
    "md": ("down", "down", "downwards", "lower", "further down", "straight down", "downward"),
}  # fmt: skip
_SHAPES = ("{v} {w} {}", "{v} {w} {}", "{v} {} {w}", "{v} {} {w}", "{v} {w} by {}",
           "{v} {w} for {}",
           "{v} {w}, {}", "{v} another {} {w}", "{v} {w}: {}")  # fmt: skip
_BARE_SHAPES = ("{} {w}", "{} {w}", "{w} {}", "{w} by {}", "{w}, {}", "{}, {w}",
                "i'd like you {} {w}", "i want you {} {w}", "i need you {} {w}", "be {} {w}",
                "get yourself {} {w}", "you should be {} {w}", "make it {} {w}", "another {} {w}",
                "i want to see you {} {w}", "take it {} {w}", "{w} you go, {}")  # fmt: skip
_SPECIAL = {
    "mf": ("advance {}", "advance by {}", "proceed {}", "proceed by {}", "press on {}",
           "keep going for {}",
           "carry on for {}", "continue for {}", "push on {}", "go on for {}", "cover {} forwards",
           "straight for {}", "keep straight on for {}", "approach by {}", "close in by {}"),
    "mb": ("back up {}", "back up by {}", "back away {}", "back away by {}", "back off {}",
           "back off by {}", "reverse {}", "reverse by {}", "retreat {}", "retreat by {}",
           "withdraw {}", "withdraw by {}", "pull back {}", "step back {}", "fall back {}"),
    "ml": ("strafe left {}", "strafe left by {}", "sidestep {} to the left",
           "strafe {} to the left",
           "sidestep left by {}", "move sideways to the left, {}", "step left {}"),
    "mr": ("strafe right {}", "strafe right by {}", "sidestep {} to the right",
           "strafe {} to the right", "sidestep right by {}", "move sideways to the right, {}",
           "step right {}"),
    "mu": ("rise {}", "rise by {}", "ascend {}", "ascend by {}", "climb {}", "climb by {}",
           "gain {} of height",
           "gain {} of altitude", "gain {}", "{} more altitude", "{} more height", "soar {}",
           "add {} of altitude", "raise yourself {}", "raise yourself by {}", "lift yourself {}",
           "rise another {}", "increase your height by {}", "put on {} of height"),
    "md": ("descend {}", "descend by {}", "sink {}", "sink by {}", "lose {} of height", "drop {}",
           "drop by {}",
           "lose {} of altitude", "lower yourself {}", "lower yourself by {}", "dip {}",
           "{} less altitude", "reduce your height by {}", "come down {}", "come down by {}",
           "dive {}", "settle {} lower"),
}  # fmt: skip
_BIT = ("a bit", "a little", "slightly", "a little bit", "a touch", "a tad", "just a bit",
        "a smidge",
        "ever so slightly", "a wee bit")  # fmt: skip
_SOME = ("somewhat", "some", "a good bit", "quite a bit")
_SIDES = {
    "tc": ("right", "right", "to the right", "to the right", "to your right", "clockwise",
           "in the clockwise direction", "rightwards", "cw"),
    "tu": ("left", "left", "to the left", "to the left", "to your left", "counterclockwise",
           "anticlockwise", "in the anticlockwise direction", "leftwards", "counter-clockwise",
           "anti-clockwise", "ccw"),
}  # fmt: skip
_TURN_SHAPES = ("{v} {w} {}", "{v} {w} {}", "{v} {} {w}", "{v} {} {w}", "{v} {w} by {}",
                "{v} {w} through {}", "{v} by {} {w}", "{v} {w}, {}", "{v} another {} {w}",
                "{v} through {} {w}", "go {} {w} on the spot")  # fmt: skip
_BARE_TURNS = ("{} {w}", "make {} {w}", "do {} {w}", "a turn of {} {w}", "make a turn of {} {w}",
               "a turn {w} of {}", "i need {} {w}", "give me {} {w}", "i'd like {} {w}",
               "a rotation of {} {w}", "change your heading by {} {w}",
               "face {} further {w}")  # fmt: skip
_SLIGHT = ("turn {b} {w}", "point your nose {b} {w}", "rotate {b} {w}", "turn {w} {b}",
           "look {b} {w}",
           "{b} {w} with your nose", "swing {b} {w}", "face {b} more {w}")  # fmt: skip

_MOVES: dict[str, tuple[str, ...]] = {
    "mf": ("go forward {}", "move forward {}", "fly forward {}", "fly {} forward", "move {} ahead",
           "go {} straight ahead", "advance {}", "move {} forwards", "fly ahead by {}",
           "proceed {}", "travel {} forward", "go straight for {}", "head forward {}"),
    "mb": ("go back {}", "move back {}", "move backward {}", "fly {} backwards", "back up {}",
           "go {} back", "retreat {}", "fly backward by {}", "reverse {}", "move {} backward"),
    "ml": ("go left {}", "move left {}", "fly left {}", "move {} to the left", "fly {} to the left",
           "shift left by {}", "strafe left {}", "go {} left", "slide {} to the left"),
    "mr": ("go right {}", "move right {}", "fly right {}", "move {} to the right",
           "fly {} to the right", "shift right by {}", "strafe right {}", "go {} right",
           "slide {} to the right"),
    "mu": ("go up {}", "move up {}", "fly up {}", "rise {}", "ascend {}", "climb {}",
           "fly {} higher", "move {} upwards", "go {} up", "rise by {}", "increase altitude by {}",
           "lift up {}"),
    "md": ("go down {}", "move down {}", "fly down {}", "descend {}", "sink {}", "lower by {}",
           "fly {} lower", "move {} downwards", "go {} down", "come down {}",
           "decrease altitude by {}", "drop down {}"),
}  # fmt: skip
_PLAIN_MOVES = {
    "mf": ("go forward", "move forward", "fly forward", "fly ahead", "advance", "move ahead"),
    "mb": ("go back", "move backward", "fly backwards", "back up", "move back"),
    "ml": ("go left", "move left", "fly to the left", "shift left", "move to the left"),
    "mr": ("go right", "move right", "fly to the right", "shift right", "move to the right"),
    "mu": ("go up", "move up", "fly up", "rise", "ascend", "fly higher", "move upwards"),
    "md": ("go down", "move down", "fly down", "descend", "fly lower", "move downwards"),
}
_TURNS = {
    "tc": ("turn right {}", "turn right by {}", "turn {} to the right", "rotate right {}",
           "turn clockwise {}", "rotate {} clockwise", "turn {} clockwise", "spin clockwise {}",
           "yaw right {}", "rotate clockwise by {}", "swing {} to the right"),
    "tu": ("turn left {}", "turn left by {}", "turn {} to the left", "rotate left {}",
           "turn counterclockwise {}", "rotate {} counterclockwise", "turn {} anticlockwise",
           "spin counterclockwise {}", "yaw left {}", "rotate counterclockwise by {}",
           "swing {} to the left"),
}  # fmt: skip
_PLAIN_TURNS = (
    ("turn right", "tc(90)"), ("turn left", "tu(90)"), ("turn to the right", "tc(90)"),
    ("turn to the left", "tu(90)"), ("rotate right", "tc(90)"), ("rotate left", "tu(90)"),
    ("make a quarter turn to the right", "tc(90)"), ("make a quarter turn to the left", "tu(90)"),
    ("turn around", "tc(180)"), ("make a u-turn", "tc(180)"), ("turn back", "tc(180)"),
    ("make a half turn", "tc(180)"), ("face the other way", "tc(180)"),
    ("look behind you", "tc(180)"), ("make a full turn", "tc(360)"),
    ("spin around once", "tc(360)"), ("turn once around", "tc(360)"),
    ("do a full circle", "tc(360)"),
    ("make a full turn to the left", "tu(360)"), ("do a 360", "tc(360)"),
    ("about turn", "tc(180)"), ("about face", "tc(180)"), ("turn right round", "tc(180)"),
    ("make an about-turn", "tc(180)"), ("look the other way", "tc(180)"), ("turn round", "tc(180)"),
    ("turn till you look the other direction", "tc(180)"), ("turn your back on me", "tc(180)"),
    ("face what is behind you", "tc(180)"), ("spin round to face backwards", "tc(180)"),
    ("turn the opposite way", "tc(180)"), ("show me your back", "tc(180)"), ("do a 180", "tc(180)"),
    ("look right", "tc(90)"), ("look left", "tu(90)"), ("look to the right", "tc(90)"),
    ("look to the left", "tu(90)"), ("face right", "tc(90)"), ("face left", "tu(90)"),
    ("take a right turn", "tc(90)"), ("take a left turn", "tu(90)"), ("hang a left", "tu(90)"),
    ("hang a right", "tc(90)"), ("a right turn", "tc(90)"), ("a left turn", "tu(90)"),
    ("go all the way round once", "tc(360)"), ("do a pirouette", "tc(360)"),
    ("spin once", "tc(360)"),
    ("turn all the way round", "tc(360)"), ("one full spin", "tc(360)"),
    ("whirl round once", "tc(360)"),
    ("one whole round clockwise", "tc(360)"), ("once round anticlockwise", "tu(360)"),
    ("one full spin clockwise", "tc(360)"), ("one full spin to the left", "tu(360)"),
    ("turn by 180", "tc(180)"), ("turn half way round", "tc(180)"), ("half a turn", "tc(180)"),
    ("a half turn", "tc(180)"), ("make half a turn", "tc(180)"), ("a full turn", "tc(360)"),
)  # fmt: skip
_WAITS = (
    "wait {}", "wait for {}", "pause for {}", "pause {}", "hold for {}", "stay there for {}",
    "stay still for {}", "hold still for {}", "do nothing for {}", "delay {}", "rest for {}",
    "hang on for {}", "hang on {}", "hold on for {}", "stay put for {}",
    "stay where you are for {}",
    "remain there for {}", "linger for {}", "give it {}", "let {} pass", "let {} go by",
    "idle for {}",
    "stop for {}", "sit tight for {}", "keep still for {}", "hold it for {}", "stand by for {}",
    "wait there for {}", "a pause of {}", "a break of {}", "wait another {}", "take a break of {}",
)  # fmt: skip
_PICTURES = (
    "take a picture", "take a photo", "take a photograph", "snap a picture", "shoot a photo",
    "capture an image", "take an image", "make a photo", "photograph it", "take a snapshot",
    "take one picture", "take a shot", "shoot a picture", "snap a photo", "get a photo", "a photo",
    "a picture", "one photo", "one picture", "get a shot of what you see", "take the photo",
    "take the picture", "click", "press the shutter", "photograph what is ahead", "snap it",
    "photograph what you see", "grab a snapshot", "let me have a photo", "i want a picture",
    "take a pic", "snap a pic", "get me a photo", "shoot one", "shoot", "do a photo",
    "photograph this",
    "record a still image", "take a photo of that spot", "then one picture",
    "use your camera",
    "a photo of what is in front of you", "take a picture of the view", "grab a picture",
)  # fmt: skip
_SAY = (
    "say {}", "say '{}'", "say \"{}\"", "announce {}", "tell everyone {}", "log {}", "log '{}'",
    "report '{}'", "speak the words {}", "tell the user {}", "write '{}' to the log",
    "say: {}", "tell us {}", "let everybody hear '{}'", "give us a message: {}", "print '{}'",
    "tell them '{}'", "say the words '{}'", "let them know: {}", "pass on this message: {}",
)  # fmt: skip


def some_distance(draw: Draw, shortest: int = 20, longest: int = LONGEST) -> int:
    """A distance in cm within the limits: mostly round, some of them whole feet."""
    kind = draw.rng.random()
    if draw.chance(0.5):
        longest = min(longest, 200)
    if kind < 0.08:
        return draw.pick([each for each in amounts.FEET if shortest <= each <= longest])
    if kind < 0.14:
        return draw.pick([25 * n for n in range(1, 21) if shortest <= 25 * n <= longest])
    if kind < 0.36:
        return 50 * draw.rng.randint(1, longest // 50)
    if kind < 0.72:
        return 10 * draw.rng.randint(-(-shortest // 10), longest // 10)
    if kind < 0.86:
        return 5 * draw.rng.randint(shortest // 5, min(longest, 150) // 5)
    return draw.rng.randint(shortest, longest)


def _longest(skill: str) -> int:
    return {"mu": HIGHEST, "md": LOWEST}.get(skill, LONGEST)


def _phrasing(draw: Draw, skill: str, body: Body) -> tuple[str, bool]:
    """A phrasing of the move, and whether a number without a unit will do in it."""
    if draw.chance(0.3):
        return draw.pick(_MOVES[skill]), True
    if draw.chance(0.25):
        return draw.pick(_SPECIAL[skill]), False
    bare = draw.chance(0.35)
    shape, way = draw.pick(_BARE_SHAPES if bare else _SHAPES), draw.pick(_WAYS[skill])
    verb = draw.pick(body.verbs)
    if verb in ("come", "get") and skill == "mb":  # "come back" is said of a way back
        verb = "go"
    return shape.replace("{v}", verb).replace("{w}", way), False


def move(draw: Draw, skill: str = "", body: Body = FLYING) -> Step:
    skill = skill or draw.pick(body.moves)
    kind = draw.rng.random()
    if kind < 0.13:
        return _vague_move(draw, skill, body)
    while True:
        phrasing, bare = _phrasing(draw, skill, body)
        if body is FLYING or not phrasing.startswith("fly"):
            break
    centimetres = draw.value(phrasing, lambda: some_distance(draw, body.shortest, _longest(skill)))
    return phrasing.format(amounts.distance(draw, centimetres, bare)), f"{skill}({centimetres})"


def _vague_move(draw: Draw, skill: str, body: Body) -> Step:
    plain = draw.pick(_PLAIN_MOVES[skill])
    if draw.chance(0.5) or plain.startswith("fly") and body is not FLYING:
        plain = f"{draw.pick(body.verbs)} {draw.pick(_WAYS[skill])}"
    kind = draw.rng.random()
    if kind < 0.35:
        return plain, f"{skill}({DEFAULT_MOVE})"
    some = kind < 0.5
    amount = draw.pick(_SOME if some else _BIT)
    text = f"{plain} {amount}"
    if draw.chance(0.3):
        text = f"{amount} {'more ' if draw.chance(0.3) else ''}{draw.pick(_WAYS[skill])}"
    return text, f"{skill}({DEFAULT_MOVE if some else SMALL_MOVE})"


def far_move(draw: Draw, body: Body = FLYING) -> Step:
    """A move of 5 to 10 m: two calls."""
    skill = draw.pick(tuple(each for each in body.moves if each not in ("mu", "md")))
    phrasing, bare = draw.pick(_MOVES[skill]), True
    if draw.chance(0.7) or body is not FLYING:
        phrasing, bare = _phrasing(draw, skill, body)
    centimetres = draw.value(phrasing, lambda: draw.pick((
        100 * draw.rng.randint(6, 10), 50 * draw.rng.randint(11, 20),
        10 * draw.rng.randint(52, 99))))  # fmt: skip
    text = phrasing.format(amounts.distance(draw, centimetres, bare))
    return text, f"{skill}({LONGEST});{skill}({centimetres - LONGEST})"


def bad_move(draw: Draw, body: Body = FLYING) -> Step:
    """A move beyond the limits, and the refusal that says what they are."""
    skill = draw.pick(body.moves)
    phrasing, bare = _phrasing(draw, skill, body)
    least = draw.chance(0.4)

    def choose() -> int:
        if least:
            return draw.rng.randint(1, body.shortest - 1)
        first = {"mu": 3, "md": 2}.get(skill, 11)
        return draw.pick((100 * draw.rng.randint(first, 60), 100 * draw.rng.randint(first, 20),
                          draw.rng.randint(100 * first, 3000)))  # fmt: skip

    centimetres = draw.value(phrasing, choose)
    reason = f"Distance must be {body.shortest} to {LONGEST} cm"
    if skill in ("mu", "md") and not least:
        reason = "I must stay below 3 m" if skill == "mu" else "I must stay above the ground"
    text = phrasing.format(amounts.distance(draw, centimetres, bare))
    return text, f"refuse('{reason}')"


def some_angle(draw: Draw, least: int = 1) -> int:
    kind = draw.rng.random()
    if kind < 0.4:
        return draw.pick((15, 20, 30, 45, 60, 72, 75, 90, 90, 120, 135, 180, 270, 360))
    if kind < 0.75:
        return 5 * draw.rng.randint(1, 72)
    return draw.rng.randint(least, 360)


def _turn_phrasing(draw: Draw, skill: str, body: Body) -> tuple[str, bool]:
    if draw.chance(0.3):
        return draw.pick(_TURNS[skill]), True
    bare = draw.chance(0.35)
    shape, side = draw.pick(_BARE_TURNS if bare else _TURN_SHAPES), draw.pick(_SIDES[skill])
    return shape.replace("{v}", draw.pick(body.turning)).replace("{w}", side), False


def turn(draw: Draw, body: Body = FLYING) -> Step:
    kind = draw.rng.random()
    if kind < 0.22:
        return draw.pick(_PLAIN_TURNS)
    skill = draw.pick(tuple(_TURNS))
    if kind < 0.28:
        shape, side = draw.pick(_SLIGHT), draw.pick(_SIDES[skill])
        return shape.format(b=draw.pick(_BIT), w=side), f"{skill}({SMALL_TURN})"
    phrasing, bare = _turn_phrasing(draw, skill, body)
    degrees = draw.value(phrasing, lambda: some_angle(draw, body.least_angle))
    return phrasing.format(amounts.angle(draw, degrees, bare)), f"{skill}({degrees})"


def bad_turn(draw: Draw, body: Body = FLYING) -> Step:
    """A turn beyond the limits, and the refusal that says what they are."""
    phrasing, bare = _turn_phrasing(draw, draw.pick(tuple(_TURNS)), body)
    least = body.least_angle > 1 and draw.chance(0.4)

    def choose() -> int:
        if least:
            return draw.rng.randint(1, body.least_angle - 1)
        return draw.pick((10 * draw.rng.randint(37, 99), draw.rng.randint(361, 999)))

    degrees = draw.value(phrasing, choose)
    text = phrasing.format(amounts.angle(draw, degrees, bare))
    return text, f"refuse('Angle must be {body.least_angle} to 360 degrees')"


_WAIT_PLAIN = ("wait", "pause", "tarry a moment", "wait a moment", "hold on a second or so",
               "stop a bit",
               "stay there a moment", "wait a little", "take a breather",
               "hold still a while")  # fmt: skip


def wait(draw: Draw) -> Step:
    if draw.chance(0.1):
        return draw.pick(_WAIT_PLAIN), "d(3)"
    phrasing = draw.pick(_WAITS)

    def choose() -> str:
        if draw.chance(0.25):
            return f"{draw.rng.randint(1, 99) / 10:g}"
        return str(draw.pick((draw.rng.randint(1, 10), draw.rng.randint(1, 60), 30, 60)))

    seconds = draw.value(phrasing, choose)
    return phrasing.format(amounts.time(draw, seconds)), f"d({seconds})"


_LONG = ("two minutes", "a minute and a half", "3 minutes", "five minutes", "half an hour",
         "an hour",
         "ten minutes", "2 min", "2 full minutes", "one and a half minutes", "a quarter of an hour",
         "90 seconds", "two hours", "a whole day", "4 minutes", "a hundred seconds")  # fmt: skip


def bad_wait(draw: Draw) -> Step:
    """A wait of more than a minute, and the refusal."""
    phrasing = draw.pick(_WAITS)
    text = draw.value(phrasing, lambda: draw.pick((
        draw.pick(_LONG),
        f"{draw.rng.randint(61, 900)}{draw.pick((' seconds', ' s', ' sec'))}")))  # fmt: skip
    return phrasing.format(text), "refuse('Time must be 0.1 to 60 s')"


def picture(draw: Draw) -> Step:
    return draw.pick(_PICTURES), "tp()"


def say(draw: Draw) -> Step:
    phrasing = draw.pick(_SAY)

    def choose() -> str:
        if draw.chance(0.6):
            return draw.pick(words.SAYINGS)
        name = draw.other_thing()
        return draw.pick(_ABOUT_THINGS).format(name)

    text = draw.value(phrasing, choose)
    return phrasing.format(text), f"l('{text}')"


_ABOUT_THINGS = (
    "the {} is ready", "i see the {}", "bring the {}", "{}", "where is the {}", "the {} is here",
    "please take the {}", "no {}",
)  # fmt: skip
STEPS: tuple[tuple[Callable[[Draw], Step], int], ...] = (
    (move, 6), (turn, 3), (wait, 2), (picture, 2), (say, 1),
)  # fmt: skip


def step(draw: Draw, makers: tuple[tuple[Callable[[Draw], Step], int], ...] = STEPS) -> Step:
    """Any single step."""
    chosen, weights = zip(*makers, strict=True)
    return draw.rng.choices(chosen, weights)[0](draw)


_JOINTS = (
    ", then {}",
    " and then {}",
    ", {}",
    "; then {}",
    ". then {}",
    ", after that {}",
    " and {}",
    ". after that, {}",
    ", next {}",
    ". next, {}",
    ", and once that is done, {}",
    ". when you have done that, {}",
    ". once that's done {}",
    ", followed by this: {}",
    " and after it {}",
    " and afterwards {}",
    ". {}",
    "; {}",
    " then {}",
    ", and {}",
    " & {}",
    ", thereafter {}",
    ", and only then {}",
    ". and now {}",
    " -> {}",
    ", and from there {}",
)
_LAST = (", and finally {}", ". finally, {}", " and {}", ", and then {}", ", finally {}",
         ", and last of all {}", ". at the end, {}", ", to finish, {}", ", and {}", ", lastly {}",
         ". and to finish off, {}", " and in the end {}")  # fmt: skip
_FIRST = ("first {}", "to begin with, {}", "start with this: {}", "begin like this: {}",
          "first of all, {}",
          "like this: {}", "do the following: {}")  # fmt: skip
_TURNED = ("before you {1}, {0}", "{1}, but first {0}", "{1}, but before that {0}",
           "{1} after this: {0}", "{1} once you have done this: {0}",
           "do this, {0}, before you {1}",
           "{0} before you {1}")  # fmt: skip


def joined(draw: Draw, parts: list[str]) -> str:
    """The parts as one instruction, two of them perhaps with the second one said first."""
    if len(parts) == 2 and draw.chance(0.12):
        return draw.pick(_TURNED).format(*parts)
    text = draw.pick(_FIRST).format(parts[0]) if draw.chance(0.12) else parts[0]
    style = draw.pick(_JOINTS)
    for index, part in enumerate(parts[1:], 2):
        last = index == len(parts) and draw.chance(0.5)
        text += draw.pick(_LAST if last else (style, style, draw.pick(_JOINTS))).format(part)
    return text
