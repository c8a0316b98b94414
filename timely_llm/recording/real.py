"""A recording replayed on real vLLM: the recorded goals, with plans that the model writes now.

An edge. Robots take as long as they were recorded for the same calls; those that were never
recorded take a time drawn from the skill's model. A recorded failure of a skill does not come back.
"""

from __future__ import annotations

import gc
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from timely_llm import policies
from timely_llm.bench.real_time import Check, MeasuredDriver, Stretched
from timely_llm.engine.config import EngineConfig
from timely_llm.engine.factory import build
from timely_llm.estimation.presets import PACES
from timely_llm.language.parser import PlanError, parse
from timely_llm.language.skills import SkillSet
from timely_llm.prompts.template import AUTO, PromptTemplate
from timely_llm.protocols.messages import ExecutionState
from timely_llm.recording.goals import Goal
from timely_llm.recording.recorded_trace import RecordedTrace
from timely_llm.recording.replay import RecordedGoals
from timely_llm.simulation.loop import Replay, end_of
from timely_llm.simulation.setting import Run, Setting
from timely_llm.simulation.trace import Arrival, Trace
from timely_llm.simulation.written_plans import WrittenRobots

_OPEN = 8  # brackets that a plan which was cut may lack


def run_real(
    recorded: RecordedTrace,
    setting: Setting,
    model: str,
    parameters: Mapping[str, Any],
    check: Check,
) -> Run:
    """Replay under ``setting`` on vLLM with ``model``, slowed to the recorded pace if it had one.
    ``check`` is called between steps and may raise. An ``EngineError`` where vLLM does not start.
    """
    policy = policies.get(setting.policy)
    pace = str(parameters.get("pace") or "")
    pace = pace if pace in PACES else ""
    engine = build(
        EngineConfig(
            model, setting.max_batch, native=policy.native, priority=policy.priority, pace=pace
        )
    )
    try:
        prompts = PromptTemplate.resolve("", model, str(parameters.get("plan_names") or AUTO))
        trace = with_calls(recorded)
        kinds = {a.task.kind: recorded.skills[a.task.kind] for a in trace.arrivals}
        driver = MeasuredDriver(kinds, setting, Stretched(engine), prompts, check)
        cut_at = end_of(trace.arrivals, setting)
        replay = Replay(
            driver,
            RecordedGoals(recorded, trace.arrivals),
            WrittenRobots(trace.arrivals, kinds, 0),
            cut_at=cut_at,
            network=setting.network,
        )
        gc.collect()
        try:
            return replay.run()
        finally:
            driver.clear(cut_at)
    finally:
        engine.close()


def with_calls(recorded: RecordedTrace) -> Trace:
    """The trace with whole plans and a duration for each call in their text, as far as known."""
    arrivals = tuple(
        _arrival(arrival, known.goal, recorded.skills[arrival.task.kind])
        for arrival, known in zip(recorded.trace.arrivals, recorded.known, strict=True)
    )
    return replace(recorded.trace, arrivals=arrivals)


def _arrival(arrival: Arrival, goal: Goal, skills: SkillSet) -> Arrival:
    text = _sound(goal.text, skills)
    durations = []
    done = [call for call in goal.calls if call.state is ExecutionState.SUCCEEDED]
    for call in parse(text, skills) if text else ():
        same = next((d for d in done if (d.name, d.arguments) == (call.name, call.arguments)), None)
        if same is not None:
            done.remove(same)
        expected = skills[call.name].expected_duration(call.values)
        durations.append(max(0.0, expected) if same is None else same.elapsed)
    tokens = (text,) if text else ()
    return replace(arrival, task=replace(arrival.task, tokens=tokens), durations=tuple(durations))


def _sound(text: str, skills: SkillSet) -> str:
    """The plan, closed where it was cut; empty where it cannot be read all the same."""
    for closing in range(_OPEN):
        whole = text + "}" * closing
        try:
            parse(whole, skills)
        except PlanError:
            continue
        return whole
    return ""
