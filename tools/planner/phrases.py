"""Single steps as a person says them: moves, turns, waits, pictures, spoken texts.

Each function draws one step and gives (words, plan text). The numbers' words become the skills'
units here: cm, degrees, seconds.
"""

from __future__ import annotations

from collections.abc import Callable

from tools.planner import words
from tools.planner.draw import Draw

Step = tuple[str, str]

DEFAULT_MOVE = 40  # cm, where no distance is said
SMALL_MOVE = 20  # cm, "a bit"
SHORTEST, LONGEST = 20, 500  # cm, limits of the drone's moves

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
)  # fmt: skip
_WAITS = (
    "wait {}", "wait for {}", "pause for {}", "pause {}", "hold for {}", "stay there for {}",
    "stay still for {}", "hold still for {}", "do nothing for {}", "delay {}", "rest for {}",
)  # fmt: skip
_PICTURES = (
    "take a picture", "take a photo", "take a photograph", "snap a picture", "shoot a photo",
    "capture an image", "take an image", "make a photo", "photograph it", "take a snapshot",
)  # fmt: skip
_SAY = (
    "say {}", "say '{}'", "say \"{}\"", "announce {}", "tell everyone {}", "log {}", "log '{}'",
    "report '{}'", "speak the words {}", "tell the user {}", "write '{}' to the log",
)  # fmt: skip


def _metres(draw: Draw, centimetres: int) -> str:
    metres = f"{centimetres / 100:g}"
    if centimetres % 100 == 0 and draw.chance(0.5):
        metres = words.NUMBER_WORDS.get(centimetres // 100, metres)
    if metres == "one":
        return draw.pick(("one meter", "one metre", "a meter", "1 meter"))
    unit = draw.pick((" m", "m", " meters", " metres", " m", " meter"))
    return metres + (unit if metres[0].isdigit() else " meters")


def distance_words(draw: Draw, centimetres: int) -> str:
    if centimetres == 50 and draw.chance(0.15):
        return draw.pick(("half a meter", "half a metre", "0.5 m", "fifty centimeters"))
    if centimetres == 150 and draw.chance(0.15):
        return "one and a half meters"
    if centimetres % 10 == 0 and draw.chance(0.4 if centimetres % 50 == 0 else 0.15):
        return _metres(draw, centimetres)
    unit = draw.pick((" cm", " cm", " cm", "cm", " centimeters", " centimetres", "", " cms"))
    return f"{centimetres}{unit}"


def some_distance(draw: Draw) -> int:
    """A distance in cm within the limits: mostly round."""
    kind = draw.rng.random()
    if kind < 0.3:
        return 50 * draw.rng.randint(1, 10)
    if kind < 0.7:
        return 10 * draw.rng.randint(2, 50)
    return draw.rng.randint(SHORTEST, LONGEST)


def move(draw: Draw, skill: str = "") -> Step:
    skill = skill or draw.pick(tuple(_MOVES))
    kind = draw.rng.random()
    if kind < 0.08:
        return draw.pick(_PLAIN_MOVES[skill]), f"{skill}({DEFAULT_MOVE})"
    if kind < 0.12:
        bit = draw.pick(("a bit", "a little", "slightly", "a little bit"))
        return f"{draw.pick(_PLAIN_MOVES[skill])} {bit}", f"{skill}({SMALL_MOVE})"
    phrasing = draw.pick(_MOVES[skill])
    centimetres = draw.value(phrasing, lambda: some_distance(draw))
    return phrasing.format(distance_words(draw, centimetres)), f"{skill}({centimetres})"


def bad_move(draw: Draw) -> Step:
    """A move beyond the limits, and what they are."""
    phrasing = draw.pick(_MOVES[draw.pick(tuple(_MOVES))])

    def choose() -> int:
        if draw.chance(0.25):
            return draw.rng.randint(1, SHORTEST - 1)
        return draw.pick((100 * draw.rng.randint(6, 99), draw.rng.randint(501, 3000)))

    centimetres = draw.value(phrasing, choose)
    text = phrasing.format(distance_words(draw, centimetres))
    return text, f"Distance must be {SHORTEST} to {LONGEST} cm"


def angle_words(draw: Draw, degrees: int) -> str:
    if degrees in words.NUMBER_WORDS and draw.chance(0.1):
        return f"{words.NUMBER_WORDS[degrees]} degrees"
    return f"{degrees}{draw.pick((' degrees', ' degrees', ' degrees', ' deg', '°', ''))}"


def some_angle(draw: Draw) -> int:
    kind = draw.rng.random()
    if kind < 0.3:
        return draw.pick((15, 20, 30, 45, 60, 75, 90, 120, 135, 180, 270, 360))
    if kind < 0.6:
        return 5 * draw.rng.randint(1, 72)
    return draw.rng.randint(1, 360)


def turn(draw: Draw) -> Step:
    if draw.chance(0.2):
        return draw.pick(_PLAIN_TURNS)
    skill = draw.pick(tuple(_TURNS))
    phrasing = draw.pick(_TURNS[skill])
    degrees = draw.value(phrasing, lambda: some_angle(draw))
    return phrasing.format(angle_words(draw, degrees)), f"{skill}({degrees})"


def bad_turn(draw: Draw) -> Step:
    phrasing = draw.pick(_TURNS[draw.pick(tuple(_TURNS))])
    degrees = draw.value(phrasing, lambda: draw.pick((10 * draw.rng.randint(37, 200),
                                                      draw.rng.randint(361, 2000))))  # fmt: skip
    return phrasing.format(angle_words(draw, degrees)), "Angle must be 1 to 360 degrees"


def wait(draw: Draw) -> Step:
    phrasing = draw.pick(_WAITS)

    def choose() -> str:
        if draw.chance(0.35):
            return f"{draw.rng.randint(1, 99) / 10:g}"
        return str(draw.pick((draw.rng.randint(1, 10), draw.rng.randint(1, 60))))

    seconds = draw.value(phrasing, choose)
    if seconds == "0.5" and draw.chance(0.5):
        text = "half a second"
    elif seconds == "60" and draw.chance(0.5):
        text = draw.pick(("a minute", "one minute"))
    else:
        number = seconds
        if seconds.isdigit() and int(seconds) in words.NUMBER_WORDS and draw.chance(0.2):
            number = words.NUMBER_WORDS[int(seconds)]
        unit = draw.pick((" seconds", " seconds", " s", " sec", "s" if number == seconds else " s"))
        text = number + unit
        if seconds == "1":
            text = draw.pick(("1 second", "one second", "a second", "1 s"))
    return phrasing.format(text), f"d({seconds})"


def bad_wait(draw: Draw) -> Step:
    phrasing = draw.pick(_WAITS)
    seconds = draw.value(phrasing, lambda: draw.rng.randint(61, 900))
    unit = draw.pick((" seconds", " s", " sec"))
    return phrasing.format(f"{seconds}{unit}"), "Time must be 0.1 to 60 s"


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


_JOINTS = (", then {}", " and then {}", ", {}", "; then {}", ". then {}", ", after that {}",
           " and {}", ". after that, {}", ", next {}", ". next, {}")  # fmt: skip
_LAST = (", and finally {}", ". finally, {}", " and {}", ", and then {}", ", finally {}")


def joined(draw: Draw, parts: list[str]) -> str:
    """The parts as one instruction."""
    text = parts[0]
    style = draw.pick(_JOINTS)
    for index, part in enumerate(parts[1:], 2):
        last = index == len(parts) and draw.chance(0.5)
        text += draw.pick(_LAST if last else (style, style, draw.pick(_JOINTS))).format(part)
    return text
