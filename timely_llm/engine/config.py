"""What an engine is built from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from timely_llm.protocols.engine import EngineRequest

Script = Callable[[EngineRequest], Sequence[str]]
"""The texts of the tokens of a request's answer."""


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """An engine that is to be built: vLLM, or with a ``script`` the simulated one.

    ``model`` is a folder or a name that vLLM loads. ``max_batch`` requests compute in one step.
    With ``native`` vLLM's own scheduler decides who runs, by arrival or by ``priority``.
    ``engine_args`` and ``sampling`` are vLLM's ``EngineArgs`` and ``SamplingParams`` by name; they
    override what suits a planner: temperature 0, and on a CPU no compilation, KV blocks of 32
    tokens and a KV cache of bounded size. ``chat_template`` is a jinja2 text or file; without one
    the tokenizer's is used, if there is any. ``pace`` names the step times, of
    ``presets.PACES``, that the engine is slowed down to; empty: none. A simulated engine needs one.
    """

    model: str = ""
    max_batch: int = 8
    native: bool = False
    priority: bool = False
    engine_args: Mapping[str, Any] = field(default_factory=dict)
    sampling: Mapping[str, Any] = field(default_factory=dict)
    chat_template: str | None = None
    pace: str = ""
    script: Script | None = None
