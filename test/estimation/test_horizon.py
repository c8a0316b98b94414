"""When a robot runs dry: sent segments, their arrival, the robot's own reports."""

from hypothesis import given
from hypothesis import strategies as st

from timely_llm.estimation.horizon import Horizon
from timely_llm.protocols.messages import Execution, ExecutionState, SkillCall

RUNNING, RECEIVED = ExecutionState.RUNNING, ExecutionState.RECEIVED


def work(duration: float) -> list[SkillCall]:
    return [SkillCall("go", expected_duration=duration)]


def report(remaining: float, segment: int = 0, state: ExecutionState = RUNNING) -> Execution:
    return Execution(1, 1, "p", state, segment, total_remaining=remaining)


def got(segment: int, remaining: float) -> Execution:
    return report(remaining, segment, RECEIVED)


def test_one_segment_from_sending_to_dry():
    horizon = Horizon()
    assert (horizon.starved, horizon.remaining(5.0)) == (True, -1.0)
    horizon.sent(0, work(3.0), delivery=10.5)
    assert (horizon.end, horizon.starved, horizon.remaining(10.0)) == (13.5, False, 3.5)
    horizon.received(got(0, 3.0), now=10.25)
    assert horizon.end == 13.25
    horizon.reported(report(2.0), now=12.0)  # slower than the model says
    assert horizon.end == 14.0
    horizon.starve(13.75)
    assert (horizon.end, horizon.starved, horizon.remaining(20.0)) == (13.75, True, -1.0)


def test_segments_sent_ahead_add_up():
    horizon = Horizon()
    horizon.sent(0, work(3.0), 10.0)
    horizon.sent(1, work(2.0), 11.0)
    assert horizon.end == 15.0
    horizon.sent(2, work(1.0), 20.0)  # dry from 15 on
    assert horizon.end == 21.0


def test_a_report_does_not_know_what_is_on_its_way():
    horizon = Horizon()
    horizon.sent(0, work(3.0), 10.0)
    horizon.received(got(0, 3.0), 10.0)
    horizon.sent(1, work(2.0), 11.0)
    horizon.reported(report(1.5), now=11.0)  # made before segment 1 came
    assert horizon.end == 14.5
    horizon.received(got(1, 3.25), now=11.25)
    assert horizon.end == 14.5
    horizon.reported(report(3.0), now=11.5)
    assert horizon.end == 14.5


def test_idle_reported_before_a_segment_on_its_way_is_not_dry():
    horizon = Horizon()
    horizon.sent(0, work(3.0), 10.0)
    horizon.starve(9.99)
    assert (horizon.starved, horizon.end) == (False, 12.99)


def test_a_robot_that_stays_dry_has_run_dry_once():
    """Heartbeats repeat IDLE; waiting counts from the first."""
    horizon = Horizon()
    horizon.sent(0, work(1.0), 0.0)
    horizon.received(got(0, 1.0), 0.0)
    for now in (1.0, 1.5, 2.0):
        horizon.starve(now)
        assert (horizon.end, horizon.starved) == (1.0, True)


@given(
    st.lists(
        st.tuples(st.sampled_from(["sent", "received", "reported", "dry"]), st.floats(0, 5)),
        max_size=40,
    )
)
def test_any_history_leaves_a_sound_horizon(history):
    horizon, now, index, flying = Horizon(), 0.0, 0, []
    for kind, amount in history:
        now += 0.25
        if kind == "sent":
            horizon.sent(index, work(amount), now + 0.008)
            flying.append(index)
            index += 1
        elif kind == "received" and flying:
            horizon.received(got(flying.pop(0), amount), now)
        elif kind == "reported":
            horizon.reported(report(amount), now)
        elif kind == "dry":
            horizon.starve(now)
        remaining = horizon.remaining(now)
        assert (remaining == -1.0) == horizon.starved
        assert remaining == -1.0 or remaining >= 0.0
        assert not (flying and horizon.starved)
