"""The one place where an engine is built: vLLM or the simulated one, at its own pace or slowed."""

from __future__ import annotations

import time

from timely_llm.engine.config import EngineConfig
from timely_llm.engine.paced import PacedEngine
from timely_llm.engine.simulated import SimulatedEngine
from timely_llm.engine.vllm_engine import VllmEngine
from timely_llm.estimation.presets import PACES
from timely_llm.protocols.engine import Engine


def build(config: EngineConfig) -> Engine:
    """The engine that ``config`` describes, with its model loaded. ``EngineError`` names the fault;
    a ``KeyError`` is a pace that is not in ``PACES``."""
    engine: Engine
    if config.script is None:
        engine = VllmEngine(config)
    else:
        engine = SimulatedEngine(config.script, PACES[config.pace], max_batch=config.max_batch)
    if not config.pace:
        return engine
    return PacedEngine(engine, PACES[config.pace], time.perf_counter, time.sleep, config.pace)
