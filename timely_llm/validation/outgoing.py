"""What goes out to programs and people: numbers that JSON has, and text that a terminal shows and
does not obey. Pure."""

from __future__ import annotations

import json
import math
from typing import Any

#: Characters that are no text: controls, halves of surrogate pairs, and what turns the direction of
#: writing. New line and tabulator are text.
_UNSEEN = {
    code: f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
    for code in (
        *(*range(0x09), *range(0x0B, 0x20), *range(0x7F, 0xA0), 0x200E, 0x200F, 0x2028, 0x2029),
        *(*range(0x202A, 0x202F), *range(0x2066, 0x206A), *range(0xD800, 0xE000)),
    )
}


def visible(text: str) -> str:
    """``text`` from outside as a terminal may get it: control characters as ``\\x1b``."""
    return text.translate(_UNSEEN)


def finite(value: Any) -> Any:
    """JSON values in which a number that is not finite is None: not known."""
    if isinstance(value, dict):
        return {key: finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def json_text(value: Any, indent: int | None = None) -> str:
    """``value`` as JSON that every reader takes; on one line without ``indent``."""
    separators = (",", ":") if indent is None else None
    return json.dumps(finite(value), indent=indent, separators=separators, allow_nan=False)
