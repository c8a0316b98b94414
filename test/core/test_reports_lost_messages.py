"""Segments and reports that the network loses."""

from fleet_sim import NETWORK, FleetSim
from report_cases import PLANS, lose, outcome, sim

from timely_llm.core.config import PlannerConfig
from timely_llm.protocols.messages import ExecutionState, Segment, SegmentCommand


def test_a_first_segment_that_is_lost_ends_the_goal():
    run = sim()
    lose(run, SegmentCommand.RUN, once=True)
    plan = run.goal("r1", "short", at=1.0)
    run.finish()
    code, error = outcome(run, plan)
    assert (code, error) == (
        "SEGMENT_REFUSED",
        "robot 'r1' refused segment 1: gap: segment 1 of an unknown plan, but 0 was expected",
    )
    assert run.motions("r1") == []
    assert len(run.commands("r1")) == 2  # there is nothing to cancel


def test_segments_that_are_lost_end_the_goal():
    run = sim()
    lose(run, SegmentCommand.RUN)
    plan = run.goal("r1", "long", at=1.0)
    run.finish()
    assert outcome(run, plan) == (
        "DELIVERY_FAILED",
        "robot 'r1' did not acknowledge segment 0 within 2.0 s",
    )
    assert run.story(plan, kinds="ENDED") == ["3.082 ENDED DELIVERY_FAILED"]
    assert run.commands("r1")[-1] == "3.066 CANCEL"
    assert run.motions("r1") == []


def test_a_gap_halts_the_robot():
    run = sim()
    sent = []
    run.lose = lambda robot_id, message: (
        isinstance(message, Segment) and message.index == 1 and not sent.append(message)
    )
    plan = run.goal("r1", "long", at=1.0)
    run.finish()
    assert outcome(run, plan) == (
        "SEGMENT_REFUSED",
        "robot 'r1' refused segment 2: gap: segment 2, but 1 was expected",
    )
    assert run.motions("r1") == ["1.074 go(2)"]
    assert run.reports("r1", ExecutionState.ABORTED) == ["1.294 ABORTED go(2)"]


def test_lost_acknowledgements_end_the_goal_and_halt_the_robot():
    run = sim(config=PlannerConfig(network=NETWORK, ack_timeout=1.0))
    lose(run, ExecutionState.RECEIVED)
    plan = run.goal("r1", "long", at=1.0)
    run.finish()
    assert outcome(run, plan)[0] == "DELIVERY_FAILED"
    assert run.commands("r1")[-1] == "2.066 CANCEL"
    assert run.motions("r1") == ["1.074 go(2)"]


def test_a_lost_end_is_noticed_by_the_next_heartbeat():
    run = sim()
    lose(run, ExecutionState.PLAN_RETURNED)
    plan = run.goal("r1", "short", at=1.0)
    after = run.goal("r1", "short", at=1.5)
    run.finish()
    assert outcome(run, plan) == (
        "DELIVERY_FAILED",
        "robot 'r1' has ended the plan, but its report of it was lost",
    )
    assert run.story(plan)[-1] == "2.083 ENDED DELIVERY_FAILED"
    assert len(run.motions("r1")) == 2
    assert outcome(run, after)[0] == "DELIVERY_FAILED"


def test_idle_from_before_the_first_segment_came_is_no_end():
    """A heartbeat and the first segment pass each other on the way."""
    run = FleetSim(PLANS, network=0.3)
    run.add_robot("r1")
    plan = run.goal("r1", "long", at=2.0)
    run.finish()
    assert outcome(run, plan) == ("NONE", "")
