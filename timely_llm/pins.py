"""Fixed prompts that are kept in the KV cache, one for each robot kind; the room they leave."""

from __future__ import annotations

from dataclasses import dataclass

from timely_llm.engine.base import Engine, GenerationRequest


@dataclass(slots=True)
class Pin:
    """A fixed prompt: its length in tokens, whether it is computed, and then how many of its tokens
    others share."""

    tokens: int
    done: bool = False
    cached: int = 0


class Pins:
    """The fixed prompts by key. ``max_tokens`` is the limit of one plan."""

    def __init__(self, engine: Engine, max_tokens: int) -> None:
        self._engine = engine
        self._max_tokens = max_tokens
        self._pins: dict[str, Pin] = {}

    def __contains__(self, key: str) -> bool:
        return key in self._pins

    @property
    def missing(self) -> tuple[str, ...]:
        """Keys of those that are still to be computed."""
        return tuple(key for key, pin in self._pins.items() if not pin.done)

    def add(self, request: GenerationRequest) -> None:
        """Have a fixed prompt computed and kept under the request's id; may raise EngineError."""
        self._pins[request.id] = Pin(self._engine.submit(request))

    def settle(self, key: str, done: bool) -> None:
        """It is computed, or it cannot be: its robots' plans then compute it each."""
        if done:
            pin = self._pins[key]
            pin.done, pin.cached = True, self._shared(pin.tokens)
        else:
            self.drop(key)

    def drop(self, key: str) -> None:
        """Free a fixed prompt that no robot needs any more."""
        if self._pins.pop(key, None) is not None:
            self._engine.abort(key)

    def cached(self, key: str) -> int:
        """Tokens of a fixed prompt that are in the cache and stay there, in whole blocks: others
        share no more."""
        pin = self._pins.get(key)
        return pin.cached if pin else 0

    def tokens(self, key: str) -> int:
        """Length of a fixed prompt, in the cache or not yet; 0 for one that is not kept."""
        pin = self._pins.get(key)
        return pin.tokens if pin else 0

    @property
    def room(self) -> int:
        """KV blocks that the fixed prompts leave to plans; below 0 where they are too many."""
        taken = sum(self._blocks(pin.tokens) for pin in self._pins.values())
        return self._engine.info.kv_blocks - taken

    def need(self, key: str, prompt_tokens: int) -> int:
        """KV blocks of a plan at its longest, beyond those of its robot's fixed prompt ``key``."""
        return self._blocks(prompt_tokens + self._max_tokens - self._shared(self.tokens(key)))

    def _shared(self, tokens: int) -> int:
        size = self._engine.info.block_size
        return max(0, tokens - 1) // size * size

    def _blocks(self, tokens: int) -> int:
        return -(-tokens // self._engine.info.block_size)
