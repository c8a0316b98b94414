"""Engines are built from a configuration: which one, and at which pace."""

import pytest

from timely_llm.engine.config import EngineConfig
from timely_llm.engine.factory import build
from timely_llm.engine.paced import PacedEngine
from timely_llm.protocols.engine import EngineRequest


def test_a_script_makes_a_simulated_engine_at_its_pace():
    engine = build(EngineConfig(max_batch=3, pace="rtx4060ti-chatglm2-6b", script=lambda _: ["a"]))
    assert isinstance(engine, PacedEngine)
    info = engine.info
    assert (info.backend, info.max_batch, info.pace) == ("simulated", 3, "rtx4060ti-chatglm2-6b")
    assert engine.submit(EngineRequest("r", 1, "system", "user")) > 0
    engine.close()


def test_a_simulated_engine_has_no_speed_of_its_own():
    with pytest.raises(KeyError):
        build(EngineConfig(script=lambda _: ["a"]))
