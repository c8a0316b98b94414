"""The worst moments of a recording, each with its cause."""

from __future__ import annotations

from bag_cases import of
from fleet_sim import FleetSim

from timely_llm.recording.moments import worst_moments


def test_failures_come_first_with_the_robot_s_words(shown):
    first, *others = worst_moments(shown[1])
    assert first.failed and first.robot_id == "r2"
    assert "SKILL_FAILED" in first.what and "blocked" in first.why
    assert not any(moment.failed for moment in others)
    losses = [moment.loss for moment in others]
    assert losses == sorted(losses, reverse=True)


def test_a_late_segment_says_who_had_the_engine(tmp_path):
    sim = FleetSim({"long": "go(2);" * 6, "walk": "go(2)"}, "fcfs", max_batch=1)
    for name in ("r0", "r1"):
        sim.add_robot(name)
    sim.goal("r0", "long", 1.0)
    sim.goal("r1", "walk", 1.05, urgency=2)
    _, goals = of(sim.finish(), tmp_path, "fcfs")
    moment = next(m for m in worst_moments(goals) if m.robot_id == "r1")
    assert moment.loss > 0 and "due within" in moment.what
    assert "until the engine began on it: the engine was writing for r0 (normal" in moment.why


def test_a_robot_that_stood_still_says_why(tmp_path):
    plans = {"slow": "go(0.1);say('a long text that takes its time');go(0.1)"}
    sim = FleetSim(plans, "vllm_stream")
    sim.add_robot("r0")
    sim.goal("r0", "slow", 1.0)
    _, goals = of(sim.finish(), tmp_path, "vllm_stream")
    still = [m for m in worst_moments(goals) if "stood still" in m.what]
    assert still and "Writing took" in still[0].why
