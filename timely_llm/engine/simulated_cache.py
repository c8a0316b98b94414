"""The KV cache of the simulated engine, in blocks, exact: no token is kept, only how many there
are. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(slots=True)
class Prefix:
    """The KV blocks of a fixed prompt that live requests share, while any of them holds."""

    tokens: int
    blocks: int
    holders: int = 0

    @property
    def ready(self) -> bool:
        return self.holders > 0


@dataclass(slots=True, kw_only=True)
class Kept:
    """What the cache has of one request. Tokens count from the prompt's first; the KV of
    ``computed`` ones is there, that of ``highest`` has been there. ``room`` is what its blocks, own
    and shared, can hold."""

    prompt: int
    prefix: Prefix
    computed: int = 0
    highest: int = 0
    blocks: int = 0
    room: int = 0
    sharing: bool = False

    @property
    def decodes(self) -> bool:
        """Whether nothing but its newest token is to be computed."""
        return self.computed >= self.prompt and self.computed >= self.highest


class KvCache:
    """``total`` blocks of ``block_size`` tokens; ``used`` of them are taken."""

    def __init__(self, total: int, block_size: int) -> None:
        self.total, self.block_size = total, block_size
        self.used = 0
        self._prefixes: dict[str, tuple[int, Prefix]] = {}

    def prefix(self, system: str, count: Callable[[str], int]) -> tuple[int, Prefix]:
        """The tokens of a fixed prompt, by ``count`` when it is new, and what is shared of them."""
        known = self._prefixes.get(system)
        if known is None:
            tokens = count(system)
            # A prompt's last token is always computed, for it gives the answer's first: less one.
            blocks = max(0, tokens - 1) // self.block_size
            known = self._prefixes[system] = (tokens, Prefix(blocks * self.block_size, blocks))
        return known

    def start(self, kept: Kept) -> None:
        """Before a request's first token, or its first one after an eviction: share the prefix."""
        if kept.prefix.ready:
            kept.prefix.holders += 1
            kept.sharing = True
            kept.computed = kept.room = kept.prefix.tokens
            kept.highest = max(kept.highest, kept.computed)

    def share(self, kept: Kept) -> None:
        """A request that computed the whole prefix first hands its blocks over to all."""
        prefix = kept.prefix
        if not prefix.ready and prefix.blocks and kept.computed >= prefix.tokens:
            prefix.holders = 1
            kept.sharing = True
            kept.blocks -= prefix.blocks

    def give_up(self, kept: Kept) -> bool:
        """Take all its blocks away; whether there were any."""
        had = bool(kept.blocks or kept.sharing)
        self.used -= kept.blocks
        if kept.sharing:
            kept.prefix.holders -= 1
            if kept.prefix.holders == 0:
                self.used -= kept.prefix.blocks
        kept.sharing = False
        kept.blocks = kept.room = kept.computed = 0
        return had

    def lacks(self, kept: Kept, end: int) -> int:
        """Blocks that it needs besides its own to hold the tokens before ``end``."""
        return max(0, -(-(end - kept.room) // self.block_size))

    def take(self, kept: Kept, blocks: int) -> None:
        """Give it ``blocks`` more; whoever calls has seen that they are free."""
        self.used += blocks
        kept.blocks += blocks
        kept.room += blocks * self.block_size
