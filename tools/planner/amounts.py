"""Distances, angles and times as people write them. The values are cm, degrees and seconds."""

from __future__ import annotations

from tools.planner.draw import Draw

_UNITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
          "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen",
          "eighteen", "nineteen")  # fmt: skip
_TENS = ("", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
NUMBERS = frozenset((*_UNITS, *_TENS, "hundred", "twice"))
FEET = {round(30.48 * count): count for count in range(1, 17)}
_INCHES = {round(2.54 * count): count for count in (4, 8, 10, 12, 15, 16, 18, 20, 24, 30, 36, 40)}
_YARDS = {round(91.44 * count): count for count in range(1, 6)}
_PARTS = {
    20: ("a fifth of a metre",), 25: ("a quarter of a metre", "quarter of a meter"),
    50: ("half a metre", "half a meter", "a half metre", "half a m"),
    75: ("three quarters of a metre", "three-quarters of a meter", "0.75 m"),
    100: ("a metre", "one metre", "a meter", "one meter", "1 metre", "a full metre"),
    150: ("a metre and a half", "one and a half metres", "one and a half meters", "1 1/2 m"),
}  # fmt: skip
_TURNS = {
    30: ("a twelfth of a turn",), 45: ("an eighth of a turn", "half a right angle",
                                       "an eighth turn"),
    60: ("a sixth of a turn",), 72: ("a fifth of a turn",),
    90: ("a quarter turn", "a quarter of a turn", "a right angle", "a quarter of a full turn"),
    120: ("a third of a turn", "one third of a full turn"),
    180: ("half a turn", "a half turn", "half a circle", "half a full turn"),
    240: ("two thirds of a turn",), 270: ("three quarters of a turn", "three quarter turns"),
    360: ("a full turn", "a whole turn", "one full turn", "a full circle", "a complete turn"),
}  # fmt: skip
_TIMES = {
    "0.5": ("half a second", "half a sec"), "1": ("a second", "one second", "1 second", "a sec"),
    "1.5": ("one and a half seconds", "a second and a half"), "2": ("a couple of seconds",),
    "2.5": ("two and a half seconds",), "15": ("a quarter of a minute",),
    "30": ("half a minute", "half a min"), "60": ("a minute", "one minute", "1 min",
                                                  "a whole minute"),
    "3": ("a moment", "a little while", "a bit"),
}  # fmt: skip


def in_words(draw: Draw, number: int) -> str:
    """A number up to 999."""
    if number >= 100:
        rest = number % 100
        joint = draw.pick((" ", " and "))
        hundreds = f"{_UNITS[number // 100]} hundred"
        return f"{hundreds}{joint}{in_words(draw, rest)}" if rest else hundreds
    if number < 20:
        return _UNITS[number]
    tens, one = divmod(number, 10)
    return f"{_TENS[tens]}{draw.pick('- ')}{_UNITS[one]}" if one else _TENS[tens]


def counted(draw: Draw, number: int) -> str:
    """As digits or as words."""
    return in_words(draw, number) if number < 1000 and draw.chance(0.35) else str(number)


def distance(draw: Draw, centimetres: int, bare: bool = False) -> str:
    """A distance in one of its units; ``bare``: a number may do, for the verb tells what it is."""
    if centimetres in _PARTS and draw.chance(0.4):
        return draw.pick(_PARTS[centimetres])
    if centimetres in FEET and draw.chance(0.75 if centimetres % 5 else 0.1):
        return _feet(draw, centimetres)
    if centimetres in _INCHES and draw.chance(0.6 if centimetres % 5 else 0.06):
        return f"{counted(draw, _INCHES[centimetres])} {draw.pick(('inches', 'inch', 'in'))}"
    if centimetres > 150 and centimetres % 25 == 0 and centimetres % 100 and draw.chance(0.25):
        return _mixed(draw, centimetres)
    if centimetres % 10 == 0 and draw.chance(0.45 if centimetres % 50 == 0 else 0.2):
        return _metres(draw, centimetres)
    if draw.chance(0.2) and centimetres < 1000:
        unit = draw.pick(("centimetres", "centimeters", "cm", "centimetres"))
        return f"{in_words(draw, centimetres)} {unit}"
    plain = ("",) if bare else ()
    units = (" cm", " cm", " cm", "cm", " centimeters", " centimetres", " cms", *plain)
    return f"{centimetres}{draw.pick(units)}"


def _feet(draw: Draw, centimetres: int) -> str:
    if centimetres in _YARDS and draw.chance(0.25):
        yards = _YARDS[centimetres]
        return "a yard" if yards == 1 else f"{counted(draw, yards)} yards"
    feet = FEET[centimetres]
    if feet == 1:
        return draw.pick(("a foot", "one foot", "1 foot", "1 ft"))
    return f"{counted(draw, feet)} {draw.pick(('feet', 'feet', 'ft', 'foot'))}"


def _mixed(draw: Draw, centimetres: int) -> str:
    """Two and a quarter metres."""
    whole, rest = divmod(centimetres, 100)
    part = {25: "a quarter", 50: "a half", 75: "three quarters"}[rest]
    return f"{counted(draw, whole)} and {part} {draw.pick(('metres', 'meters'))}"


def _metres(draw: Draw, centimetres: int) -> str:
    whole, rest = divmod(centimetres, 100)
    if draw.chance(0.25) and whole:
        if rest and rest % 10 == 0 and draw.chance(0.7):
            return f"{in_words(draw, whole)} point {_UNITS[rest // 10]} {_unit(draw)}"
        if not rest and whole > 1:
            return f"{in_words(draw, whole)} {_unit(draw)}"
    number = f"{centimetres / 100:g}"
    return f"{number} m" if draw.chance(0.4) else f"{number}{draw.pick(' ')}{_unit(draw)}"


def _unit(draw: Draw) -> str:
    return draw.pick(("metres", "meters", "m", "metres", "meter", "metre"))


def angle(draw: Draw, degrees: int, bare: bool = False) -> str:
    """An angle in degrees or as a part of a turn."""
    if degrees in _TURNS and draw.chance(0.35):
        return draw.pick(_TURNS[degrees])
    if draw.chance(0.2):
        return f"{in_words(draw, degrees)} degrees"
    plain = ("",) if bare else ()
    return f"{degrees}{draw.pick((' degrees', ' degrees', ' degrees', ' deg', '°', *plain))}"


def part_of_turn(draw: Draw) -> tuple[int, str]:
    degrees = draw.pick((90, 90, 180, *_TURNS))
    return degrees, draw.pick(_TURNS[degrees])


def time(draw: Draw, seconds: str) -> str:
    """A time; the value is a decimal number of seconds."""
    if seconds in _TIMES and draw.chance(0.5):
        return draw.pick(_TIMES[seconds])
    if seconds == "1":
        return draw.pick(("1 second", "1 s", "1 sec"))
    if seconds.isdigit() and draw.chance(0.3):
        return f"{in_words(draw, int(seconds))} {draw.pick(('seconds', 'seconds', 'secs', 's'))}"
    return seconds + draw.pick((" seconds", " seconds", " s", " sec", "s", " secs"))
