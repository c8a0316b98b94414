"""The web page: one file that needs nothing else, and the policy that holds it to that. Pure."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

_INLINE = re.compile(r"<(script|style)>(.*?)</\1>", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Page:
    """The page's bytes, and its Content-Security-Policy: its own script and style by their hash,
    data from where it came from, nothing else."""

    body: bytes
    policy: str

    @classmethod
    def of(cls, text: str) -> Page:
        hashes: dict[str, list[str]] = {"script": [], "style": []}
        for kind, content in _INLINE.findall(text):
            digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
            hashes[kind].append(f"'sha256-{digest}'")
        rules = ["default-src 'none'", "connect-src 'self'", "img-src data:", "base-uri 'none'"]
        rules += ["form-action 'none'", "frame-ancestors 'none'"]
        rules += [f"{kind}-src {' '.join(found)}" for kind, found in hashes.items() if found]
        return cls(text.encode(), "; ".join(rules))

    @classmethod
    def bundled(cls) -> Page:
        """The page that comes with the package."""
        return cls.of(Path(__file__).with_name("page.html").read_text(encoding="utf-8"))
