"""The values of a running plan: truth, arithmetic, comparison. No plan text, no state."""

from __future__ import annotations

import operator
import re

from timely_llm.language.skills import Value, value_text

LARGEST = 1e9
LONGEST = 1000  # characters of an answer
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?")
_ARITHMETIC = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}
_ORDER = {"<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge}


class ValueFault(ValueError):
    """An operation that its values do not allow."""


def truth(value: Value) -> bool:
    """False, 0 and the empty text are false."""
    return bool(value)


def typed(text: str) -> Value:
    """A text that a robot or a model answered: ``True``, ``False`` and numbers as such."""
    stripped = text.strip()
    if stripped in ("True", "False"):
        return stripped == "True"
    if _NUMBER.fullmatch(stripped):
        return float(stripped) if "." in stripped else int(stripped)
    return text


def answered(value: Value) -> Value:
    """What a robot or a model answered, as plans use it.

    A ``ValueFault`` for what is no use to any plan: a text without end, a number that is none.
    """
    if isinstance(value, str):
        if len(value) > LONGEST:
            raise ValueFault(f"{len(value)} characters: must be at most {LONGEST}")
        value = typed(value)
    if isinstance(value, bool | str):
        return value
    if not -LARGEST <= value <= LARGEST:  # refuses NaN too
        text = value_text(value)
        shown = text if len(text) <= 24 else f"{text[:20]}..."
        raise ValueFault(f"{shown}: must be within {LARGEST:g}")
    return value


def negative(value: Value) -> Value:
    """``-value``; a ``ValueFault`` unless it is a number."""
    return apply("-", 0, value)


def apply(symbol: str, left: Value, right: Value) -> Value:
    """``left symbol right``; a ``ValueFault`` if the two do not allow it.

    Comparing with True or False compares truths; a number and a text are never equal.
    """
    if symbol in ("==", "!="):
        if isinstance(left, bool) or isinstance(right, bool):
            left, right = truth(left), truth(right)
        return (left == right) is (symbol == "==")
    if not (_is_number(left) and _is_number(right)):
        shown = f"{_shown(left)} {symbol} {_shown(right)}"
        raise ValueFault(f"{shown}: both sides must be numbers")
    if symbol in _ORDER:
        return _ORDER[symbol](left, right)
    if symbol == "/" and right == 0:
        raise ValueFault(f"{_shown(left)} / 0: division by zero")
    result = _ARITHMETIC[symbol](left, right)
    if not -LARGEST <= result <= LARGEST:
        raise ValueFault(f"{_shown(left)} {symbol} {_shown(right)}: beyond {LARGEST:g}")
    return result


def _is_number(value: Value) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _shown(value: Value) -> str:
    return repr(value) if isinstance(value, str) else value_text(value)
