"""Fixed prompts that are kept in the KV cache, one for each robot kind; the room they leave."""

from __future__ import annotations

from dataclasses import dataclass

from timely_llm.protocols.engine import Engine, EngineRequest


@dataclass(slots=True)
class Prefix:
    """A fixed prompt: its length in tokens, whether it is computed, and then how many of its tokens
    others share."""

    tokens: int
    done: bool = False
    cached: int = 0


class PrefixCache:
    """The fixed prompts by key. ``max_tokens`` is the limit of one plan."""

    def __init__(self, engine: Engine, max_tokens: int) -> None:
        self._engine = engine
        self._max_tokens = max_tokens
        self._prefixes: dict[str, Prefix] = {}

    def __contains__(self, key: str) -> bool:
        return key in self._prefixes

    @property
    def missing(self) -> tuple[str, ...]:
        """Keys of those that are still to be computed."""
        return tuple(key for key, prefix in self._prefixes.items() if not prefix.done)

    def add(self, request: EngineRequest) -> None:
        """Have a fixed prompt computed and kept under the request's id; may raise EngineError."""
        self._prefixes[request.id] = Prefix(self._engine.submit(request))

    def settle(self, key: str, done: bool) -> None:
        """It is computed, or it cannot be: its robots' plans then compute it each."""
        if done:
            prefix = self._prefixes[key]
            prefix.done, prefix.cached = True, self._shared(prefix.tokens)
        else:
            self.drop(key)

    def drop(self, key: str) -> None:
        """Free a fixed prompt that no robot needs any more."""
        if self._prefixes.pop(key, None) is not None:
            self._engine.abort(key)

    def cached(self, key: str) -> int:
        """Tokens of a fixed prompt that are in the cache and stay there, in whole blocks: others
        share no more."""
        prefix = self._prefixes.get(key)
        return prefix.cached if prefix else 0

    def tokens(self, key: str) -> int:
        """Length of a fixed prompt, in the cache or not yet; 0 for one that is not kept."""
        prefix = self._prefixes.get(key)
        return prefix.tokens if prefix else 0

    @property
    def room(self) -> int:
        """KV blocks that the fixed prompts leave to plans; below 0 where they are too many."""
        taken = sum(self._blocks(prefix.tokens) for prefix in self._prefixes.values())
        return self._engine.info.kv_blocks - taken

    def need(self, key: str, prompt_tokens: int) -> int:
        """KV blocks of a plan at its longest, beyond those of its robot's fixed prompt ``key``."""
        return self._blocks(prompt_tokens + self._max_tokens - self._shared(self.tokens(key)))

    def _shared(self, tokens: int) -> int:
        size = self._engine.info.block_size
        return max(0, tokens - 1) // size * size

    def _blocks(self, tokens: int) -> int:
        return -(-tokens // self._engine.info.block_size)
