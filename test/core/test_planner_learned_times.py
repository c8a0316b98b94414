"""Durations learned from robots' reports: in the horizon, in the planner, in the simulator."""

import fleet_sim
import pytest
from fleet_sim import FleetSim
from learned_cases import go, learned
from sim_cases import SKILLS, run, task, trace
from sim_parts import TimedBody, walker

from robot_adapters.adapter import Progress
from timely_llm.core import events as ev
from timely_llm.estimation.horizon import Horizon
from timely_llm.estimation.learned_times import Times
from timely_llm.protocols.messages import Execution, ExecutionState, SkillCall

State = ExecutionState


def report(state: State, call: SkillCall | None = None, segment: int = 0, **fields) -> Execution:
    return Execution(1, 1, "p", state, segment, call or SkillCall(""), **fields)


# The horizon.


def test_a_horizon_goes_by_what_was_learned():
    horizon = Horizon(times=learned(3.0).robot("r1", walker()))
    horizon.sent(0, [go(2.0)], delivery=10.0)
    assert horizon.end == pytest.approx(16.0)
    received = report(State.RECEIVED, total_remaining=2.0)
    horizon.received(received, 10.0)
    assert horizon.end == pytest.approx(16.0)
    started = report(State.STARTED, go(2.0), skill_remaining=2.0, total_remaining=2.0)
    horizon.reported(started, 10.0)
    assert horizon.end == pytest.approx(16.0)
    horizon.sent(1, [go(1.0)], delivery=11.0)
    horizon.received(
        report(State.RECEIVED, segment=1, skill_remaining=1.0, total_remaining=2.0), 11.0
    )
    assert horizon.end == pytest.approx(19.0)  # the second takes 3 s
    late = report(State.RUNNING, go(2.0), elapsed=4.0, total_remaining=1.0)
    horizon.reported(late, 14.0)
    assert horizon.end == pytest.approx(19.0)
    horizon.reported(report(State.SUCCEEDED, go(2.0), elapsed=6.0, total_remaining=1.0), 16.0)
    assert horizon.end == pytest.approx(19.0)
    horizon.starve(19.0)
    assert horizon.starved


def test_what_is_held_is_corrected_by_its_own_skills():
    """``go`` takes three times as long as expected and ``find`` does not."""
    horizon = Horizon(times=learned(3.0).robot("r1", walker()))
    find = SkillCall("find", ("cat",), ("cat",), 1.0)
    for index, call in enumerate((go(2.0), find)):
        horizon.sent(index, [call], 10.0)
        horizon.received(report(State.RECEIVED, segment=index, total_remaining=2.0), 10.0)
    horizon.reported(report(State.STARTED, go(2.0), skill_remaining=2.0, total_remaining=3.0), 10.0)
    assert horizon.end == pytest.approx(17.0)
    horizon.reported(report(State.SUCCEEDED, go(2.0), elapsed=6.0, total_remaining=1.0), 16.0)
    assert horizon.end == pytest.approx(17.0)


def test_a_robot_that_knows_more_than_its_time_model_is_believed():
    horizon = Horizon(times=learned(3.0).robot("r1", walker()))
    horizon.sent(0, [go(2.0)], 10.0)
    horizon.received(report(State.RECEIVED, total_remaining=2.0), 10.0)
    lifts = report(State.RUNNING, go(2.0), elapsed=1.0, skill_remaining=4.0, total_remaining=4.0)
    horizon.reported(lifts, 11.0)
    assert horizon.end == pytest.approx(15.0)


def test_a_call_that_takes_longer_than_any_is_over_at_any_moment():
    horizon = Horizon(times=learned(3.0).robot("r1", walker()))
    horizon.sent(0, [go(2.0)], 10.0)
    horizon.received(report(State.RECEIVED, total_remaining=2.0), 10.0)
    horizon.reported(report(State.RUNNING, go(2.0), elapsed=7.0), 17.0)
    assert (horizon.end, horizon.mean_end) == (17.0, 17.0)


def test_the_mean_is_later_than_what_is_resumed_for():
    times = Times()
    own = times.robot("r1", walker())
    for measured in (1.0, 1.5, 2.0, 2.5, 3.0) * 3:
        own.observe(go(2.0), measured)
    horizon = Horizon(times=own)
    horizon.sent(0, [go(2.0)], 10.0)
    assert horizon.end == pytest.approx(11.0)
    assert horizon.mean_end == pytest.approx(12.0, abs=0.1)
    assert horizon.remaining(10.0) == horizon.mean_end - 10.0


# The planner.


class SlowBody(TimedBody):
    """Takes ``factor`` times as long as the skill set says, and knows it no better."""

    factor = 3.0

    def poll(self, now: float) -> Progress:
        call = self._call
        if call is None:
            return Progress(True)
        elapsed, expected = now - self._started, max(0.0, call.expected_duration)
        if elapsed < self.factor * expected - 1e-9:
            return Progress(False, elapsed=elapsed, remaining=max(0.0, expected - elapsed))
        done = super().poll(now)
        return Progress(True, done.value, done.error, elapsed)

    def next_poll(self, now: float) -> float | None:
        if self._call is None or self._over:
            return None
        return max(now, self._started + self.factor * max(0.0, self._call.expected_duration))


def fleet(monkeypatch, plan="go(2);go(1)", **robot) -> FleetSim:
    monkeypatch.setattr(fleet_sim, "TimedBody", SlowBody)
    sim = FleetSim({"do": plan})
    sim.planner.state.fleet.times = Times()
    sim.add_robot("r1", **robot)
    return sim


def known(sim: FleetSim):
    return sim.planner.state.fleet.robots["r1"].times.skills["go"]


def test_the_planner_learns_from_what_is_done_to_its_end(monkeypatch):
    sim = fleet(monkeypatch)
    sim.goal("r1", "do", 1.0)
    sim.finish()
    assert [s.measured for s in known(sim).samples] == pytest.approx([6.0, 3.0])
    assert known(sim).left(4.0).low == pytest.approx(12.0)
    assert sim.planner.state.fleet.times.changes == 2


def test_what_fails_or_is_broken_off_is_no_duration(monkeypatch):
    sim = fleet(monkeypatch, faults={"go(2)": "blocked"})
    sim.goal("r1", "do", 1.0)
    sim.finish()
    assert not known(sim).samples
    sim = fleet(monkeypatch)
    sim.cancel(sim.goal("r1", "do", 1.0), 3.0)
    sim.finish()
    assert not known(sim).samples


def test_a_robot_that_has_become_slower_is_told_once(monkeypatch):
    sim = fleet(monkeypatch, "go(2);go(2);go(2);go(2);go(2)")
    for start in range(0, 300, 100):
        sim.goal("r1", "do", 1.0 + start)
    sim.finish(limit=400)
    monkeypatch.setattr(SlowBody, "factor", 4.5)
    for start in range(0, 300, 100):
        sim.goal("r1", "do", 401.0 + start)
    sim.finish(limit=900)
    told = [command for _, command in sim.log if isinstance(command, ev.SkillDrifted)]
    assert [(t.robot_id, t.skill) for t in told] == [("r1", "go")]
    assert told[0].factor == pytest.approx(1.5, rel=1e-3)
    assert known(sim).left(2.0).low == pytest.approx(9.0, rel=1e-3)


def test_keeping_hands_out_what_is_new(monkeypatch):
    sim = fleet(monkeypatch)
    sim.goal("r1", "do", 1.0)
    sim.finish()
    for _ in range(2):
        sim.tell(ev.KeepTimes())
        sim.run(sim.now + 0.1)
    kept = [command for _, command in sim.log if isinstance(command, ev.TimesLearned)]
    assert len(kept) == 1
    assert list(kept[0].learned.robots) == ["r1"]


# The simulator.


def test_a_replay_learns_what_its_trace_says():
    times = Times()
    plans = [(20.0 * i, task("go(1);go(2);go(3)")) for i in range(8)]
    what = trace(*plans, durations=(2.5, 4.5, 6.5))  # half a second, and twice as long
    run(what, times=lambda: times)
    own = times.robot("new", SKILLS["walker"])
    for expected in (1.0, 2.0, 3.0, 10.0):
        assert own.estimate(go(expected)).low == pytest.approx(0.5 + 2.0 * expected)


def test_a_replay_with_times_that_do_not_learn_changes_nothing():
    times = learned(3.0)
    times.learning = False
    before = times.learned()
    run(trace((0.0, task())), times=lambda: times)
    assert times.learned().kinds == before.kinds
