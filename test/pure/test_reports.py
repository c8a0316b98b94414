"""What robots report while they execute, what their silence means, and stopping them."""

import pytest
from fleet_sim import NETWORK, FleetSim

from robot_adapters.executor import RobotExecutor
from timely_llm import events as ev
from timely_llm.goals import PlannerConfig
from timely_llm.messages import (
    NO_PLAN,
    ErrorCode,
    Execution,
    ExecutionState,
    Segment,
    SegmentCommand,
    SkillCall,
)

PLANS = {
    "long": "go(2);go(3);go(1)",
    "short": "go(1)",
    "find": "?find('cat'){go(1);->'seen'}go(2);->'gone'",
    "vary": "_1=99;go(_1)",
    "replan": "go(1);rp();go(5)",
}


def sim(*, config: PlannerConfig | None = None, **robot) -> FleetSim:
    run = FleetSim(PLANS, config=config)
    run.add_robot("r1", **robot)
    run.add_robot("r2")
    return run


def lose(run: FleetSim, *kinds, once: bool = False) -> list[Segment | Execution]:
    """The network loses reports of these states, or segments with these commands."""
    lost = []

    def loses(robot_id: str, message: Segment | Execution) -> bool:
        kind = message.state if isinstance(message, Execution) else message.command
        hit = robot_id == "r1" and any(kind is one for one in kinds)
        if hit and not (once and lost):
            lost.append(message)
            return True
        return False

    run.lose = loses
    return lost


def outcome(run: FleetSim, plan: str) -> tuple[str, str]:
    result = run.result(plan)
    return result.error_code.name, result.error_msg


# Reports of a plan.


@pytest.mark.parametrize(
    ("seen", "value", "calls"),
    [(True, "seen", ["find(cat)", "go(1)"]), (False, "gone", ["find(cat)", "go(2)"])],
)
def test_the_value_that_a_plan_returns_is_the_goal_s(seen, value, calls):
    run = sim(values={"find(cat)": seen})
    plan = run.goal("r1", "find", at=1.0)
    run.finish()
    assert outcome(run, plan) == ("NONE", "")
    assert run.result(plan).value == value
    assert [call for _, call in run.robots["r1"].body.done] == calls


def test_a_skill_that_fails_ends_the_plan():
    run = sim(faults={"go(3)": "a wall"})
    plan = run.goal("r1", "long", at=1.0)
    run.finish()
    assert outcome(run, plan) == ("SKILL_FAILED", "robot 'r1': go(3): go: a wall")
    assert run.motions("r1") == ["1.074 go(2)", "3.074 go(3)"]
    assert run.story(plan)[-1] == "6.082 ENDED SKILL_FAILED"
    assert run.result(plan).execution_time == pytest.approx(5.0)
    assert all("CANCEL" not in line for line in run.commands("r1"))  # it halted by itself


def test_a_limit_broken_by_an_evaluated_argument_ends_the_plan_without_motion():
    run = sim()
    plan = run.goal("r1", "vary", at=1.0)
    run.finish()
    code, error = outcome(run, plan)
    assert code == "SKILL_FAILED"
    assert "go: seconds is 99 s: must be 0.1 to 60 s" in error
    assert run.motions("r1") == []


def test_a_plan_that_asks_to_replan_is_over():
    run = sim()
    plan = run.goal("r1", "replan", at=1.0)
    run.finish()
    assert outcome(run, plan) == (
        "SKILL_FAILED",
        "robot 'r1' ended the plan and asked for another one",
    )
    assert [call for _, call in run.robots["r1"].body.done] == ["go(1)"]
    assert run.story(plan)[-1] == "2.084 ENDED SKILL_FAILED"


def test_a_failure_while_the_rest_is_being_written_ends_the_writing():
    run = FleetSim({"x": "go(0.1);" + "go(9);" * 30})
    run.add_robot("r1", faults={"go(0.1)": "a wall"})
    plan = run.goal("r1", "x", at=1.0)
    run.finish()
    assert run.result(plan).error_code is ErrorCode.SKILL_FAILED
    assert run.busy[-1][1] < 1.4
    assert plan not in run.engine._live
    assert len(run.motions("r1")) == 1


def test_what_other_robots_do_is_not_disturbed():
    def motions(faulty: bool) -> list[str]:
        run = sim(faults={"go(3)": "a wall"} if faulty else {})
        run.goal("r1", "long", at=1.0)
        run.goal("r2", "long", at=1.0)
        return run.finish().motions("r2")

    assert motions(True) == motions(False)


# Reports that are no news.


def report(run: FleetSim, robot_id: str, plan: str, state: ExecutionState, **fields) -> Execution:
    """A report that the robot's executor never made."""
    defaults = {"session": run.robots[robot_id].session, "sequence": 10_000, "segment": 0}
    made = Execution(plan_id=plan, state=state, **(defaults | fields))
    run.tell(ev.ExecutionArrived(robot_id, made))
    return made


def test_feedback_for_an_ended_plan_is_ignored():
    run = sim()
    plan = run.goal("r1", "short", at=1.0)
    run.finish()
    log = len(run.log)
    in_progress = (ExecutionState.STARTED, ExecutionState.RUNNING, ExecutionState.IDLE)
    for state in ExecutionState:
        if state not in in_progress:
            report(run, "r1", plan, state, sequence=20_000 + state)
    run.run(run.now + 0.001)
    assert len(run.log) == log
    assert run.result(plan).error_code is ErrorCode.NONE


def test_a_robot_that_executes_what_is_over_is_told_to_stop():
    run = sim()
    plan = run.goal("r1", "short", at=1.0)
    run.finish()
    report(run, "r1", plan, ExecutionState.RUNNING)
    run.run(run.now + 0.001)
    assert run.sent[-1][2].command is SegmentCommand.CANCEL
    assert run.sent[-1][2].plan_id == plan


@pytest.mark.parametrize(
    ("fields", "news"),
    [
        ({}, True),
        ({"sequence": 0}, False),  # a repeat
        ({"session": 77}, False),  # of another session
    ],
)
def test_repeats_and_reports_of_another_session_are_ignored(fields, news):
    run = sim()
    plan = run.goal("r1", "long", at=1.0)
    run.run(2.0)
    report(run, "r1", plan, ExecutionState.FAILED, error="a lie", **fields)
    run.run(2.5)
    assert (plan in run.results) is news
    run.finish()
    assert (run.result(plan).error_code is ErrorCode.NONE) is not news


def test_a_report_of_another_robot_s_plan_is_ignored():
    run = sim()
    plan = run.goal("r1", "long", at=1.0)
    run.run(2.0)
    report(run, "r2", plan, ExecutionState.FAILED)
    stranger = Execution(1, 1, plan, ExecutionState.FAILED)
    run.tell(ev.ExecutionArrived("nobody", stranger))
    run.finish()
    assert run.result(plan).error_code is ErrorCode.NONE


@pytest.mark.parametrize("state", [ExecutionState.PLAN_RETURNED, ExecutionState.FAILED])
def test_a_report_of_a_plan_that_was_never_sent_is_ignored(state):
    run = sim()
    run.goal("r1", "long", at=1.0)
    waiting = run.goal("r1", "short", at=1.5)
    run.run(2.0)
    report(run, "r1", waiting, state)
    run.run(2.1)
    assert waiting not in run.results


# Delivery.


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


# Silence.


def test_a_robot_that_falls_silent_is_lost_with_all_its_goals():
    run = sim()
    plan = run.goal("r1", "long", at=1.0)
    queued = run.goal("r1", "short", at=1.5)
    other = run.goal("r2", "long", at=1.0)
    run.at(2.0, lambda: setattr(run.robots["r1"], "mute", True))
    refused = run.goal("r1", "short", at=6.0)
    run.finish()
    # Last heard at 1.902: it beats every 0.2 s from its last other report on.
    silent = ("ROBOT_LOST", "robot 'r1' is silent for 3.0 s")
    assert outcome(run, plan) == outcome(run, queued) == silent
    assert outcome(run, refused) == ("ROBOT_LOST", "robot 'r1' does not answer")
    (at,) = [e.stamp for e in run.events if e.plan_id == plan and e.type.name == "ENDED"]
    heard = max(t for t, r, _ in run.reported if r == "r1" and t < 2.0) + NETWORK
    assert at == pytest.approx(heard + 3.0)
    assert run.commands("r1")[-1].endswith("CANCEL")  # should it still hear
    assert run.result(other).error_code is ErrorCode.NONE
    alive = [c.robots for _, c in run.log if isinstance(c, ev.RobotsChanged)][-1]
    assert [(info.robot_id, info.alive) for info in alive] == [("r1", False), ("r2", True)]


def test_a_lost_robot_that_is_heard_again_takes_goals_again():
    run = sim()
    first = run.goal("r1", "long", at=1.0)
    run.at(2.0, lambda: setattr(run.robots["r1"], "mute", True))
    run.at(8.0, lambda: setattr(run.robots["r1"], "mute", False))
    second = run.goal("r1", "short", at=9.0)
    run.finish()
    assert run.result(first).error_code is ErrorCode.ROBOT_LOST
    assert run.result(second).error_code is ErrorCode.NONE
    calls = [call for _, call in run.robots["r1"].body.done]
    assert calls.count("go(1)") == 1  # the second goal's; the first was stopped before its own


def test_a_robot_without_goals_is_lost_too():
    run = sim()
    run.at(1.0, lambda: setattr(run.robots["r1"], "mute", True))
    run.run(10.0)
    refused = run.goal("r1", "short")
    run.finish()
    assert outcome(run, refused)[0] == "ROBOT_LOST"


def test_the_only_robot_can_be_lost_twice():
    run = FleetSim(PLANS)
    robot = run.add_robot("r1")
    for at, mute in ((1.0, True), (6.0, False), (7.0, True)):
        run.at(at, lambda mute=mute: setattr(robot, "mute", mute))
    alive = []
    for at in (3.5, 5.5, 6.5, 9.5, 10.5):
        run.run(at)
        alive.append(run.planner.plans.fleet.find("r1").alive)
    assert alive == [True, False, True, True, False]


def test_nothing_is_looked_at_too_early_or_for_ever():
    """With no robot alive the planner sleeps."""
    run = sim()
    run.at(1.0, lambda: [setattr(robot, "mute", True) for robot in run.robots.values()])
    run.run(10.0)
    turn = run.planner.run_once(run.now)
    assert (turn.busy, turn.wake_at) == (False, None)


# Stopping.


def test_stopping_a_robot_ends_its_goals_and_latches():
    run = sim()
    plan = run.goal("r1", "long", at=1.0)
    queued = run.goal("r1", "short", at=1.5)
    other = run.goal("r2", "long", at=1.0)
    ticket = run.ask(lambda t: ev.StopRobots(t, "r1"), at=2.0)
    refused = run.goal("r1", "short", at=3.0)
    run.act("r1", 4.0, RobotExecutor.on_rearm)
    taken = run.goal("r1", "short", at=5.0)
    run.finish()
    assert run.answers[ticket] == ev.Answered(ticket, robots=("r1",))
    assert outcome(run, plan) == outcome(run, queued) == ("ROBOT_STOPPED", "robot 'r1' was stopped")
    assert outcome(run, refused) == ("ROBOT_STOPPED", "robot 'r1' is stopped: rearm it first")
    assert run.result(taken).error_code is run.result(other).error_code is ErrorCode.NONE
    assert run.commands("r1")[4] == "2.000 STOP"
    assert len(run.motions("r1")) == 2


def test_stopping_all_robots():
    run = sim()
    ids = [run.goal("r1", "long", at=1.0), run.goal("r2", "long", at=1.0)]
    ticket = run.ask(lambda t: ev.StopRobots(t), at=2.0)
    run.finish()
    assert run.answers[ticket].robots == ("r1", "r2")
    assert {outcome(run, plan)[0] for plan in ids} == {"ROBOT_STOPPED"}
    assert len(run.motions("r1")) == len(run.motions("r2")) == 1


def test_stopping_an_unknown_robot_is_answered_with_its_name():
    run = sim()
    ticket = run.ask(lambda t: ev.StopRobots(t, "r9"), at=1.0)
    run.run(2.0)
    assert run.answers[ticket] == ev.Answered(
        ticket, ErrorCode.UNKNOWN_ROBOT, "robot_id 'r9' is not registered"
    )


def test_idle_from_before_the_stop_came_does_not_rearm():
    run = FleetSim(PLANS, network=0.3)
    run.add_robot("r1")
    run.ask(lambda t: ev.StopRobots(t, "r1"), at=2.0)
    run.run(2.29)
    assert any(2.0 < at + 0.3 < 2.29 for at, _, _ in run.reported)  # such a heartbeat has come
    refused = run.goal("r1", "short", at=2.29)
    run.finish()
    assert run.story(refused)[-1] == "2.290 REFUSED ROBOT_STOPPED"


def test_a_stop_that_is_lost_is_sent_again():
    run = sim()
    lose(run, SegmentCommand.STOP, once=True)
    run.goal("r1", "long", at=1.0)
    run.ask(lambda t: ev.StopRobots(t, "r1"), at=2.0)
    run.act("r1", 5.0, RobotExecutor.on_rearm)
    taken = run.goal("r1", "short", at=6.0)
    run.finish()
    stops = [float(line.split()[0]) for line in run.commands("r1") if "STOP" in line]
    assert len(stops) == 2
    assert 4.0 <= stops[1] <= 4.2 + 2 * NETWORK  # with the first report behind ack_timeout
    assert run.result(taken).error_code is ErrorCode.NONE


def test_a_robot_s_own_stop_ends_its_goals():
    run = sim()
    plan = run.goal("r1", "long", at=1.0)
    queued = run.goal("r1", "short", at=1.5)
    run.act("r1", 2.0, RobotExecutor.on_stop)
    refused = run.goal("r1", "short", at=3.0)
    run.act("r1", 4.0, RobotExecutor.on_rearm)
    taken = run.goal("r1", "short", at=5.0)
    run.finish()
    assert outcome(run, plan) == ("ROBOT_STOPPED", "robot 'r1' stopped the plan: stopped")
    assert outcome(run, queued) == ("ROBOT_STOPPED", "robot 'r1' is stopped")
    assert outcome(run, refused)[0] == "ROBOT_STOPPED"
    assert run.result(taken).error_code is ErrorCode.NONE
    assert len(run.motions("r1")) == 2


def test_the_planner_s_silence_ends_a_plan_on_the_robot():
    """The robot hears nothing: it finishes its call, and its report ends the goal."""
    run = sim()
    plan = run.goal("r1", "long", at=1.0)
    run.at(1.6, lambda: setattr(run.robots["r1"], "deaf", True))
    run.finish()
    assert outcome(run, plan) == ("ROBOT_STOPPED", "robot 'r1' stopped the plan: planner lost")
    assert [call for _, call in run.robots["r1"].body.done] == ["go(2)", "go(3)"]


def test_a_robot_that_waits_for_more_of_a_plan_that_is_over_is_told():
    """Its cancel was lost, while it was dry."""
    run = sim()
    plan = run.goal("r1", "short", at=1.0)
    run.finish()
    before = len(run.commands("r1"))
    report(run, "r1", plan, ExecutionState.IDLE)
    run.run(run.now + 0.001)
    assert [line.split()[1] for line in run.commands("r1")[before:]] == ["CANCEL"]


def test_idle_without_a_plan_is_nothing_to_a_robot_without_goals():
    run = sim()
    run.run(1.0)
    report(run, "r1", NO_PLAN, ExecutionState.IDLE, call=SkillCall(""))
    log = len(run.log)
    run.run(1.001)
    assert len(run.log) == log


def test_a_robot_may_be_silent_for_longer_until_its_first_report():
    """Discovery takes its time: its segments wait, and count as sent when it is there."""
    run = sim(config=PlannerConfig(network=NETWORK, first_report_timeout=6.0))
    run.at(0.001, lambda: setattr(run.robots["r1"], "mute", True))
    plan = run.goal("r1", "short", at=1.0)
    run.at(5.0, lambda: setattr(run.robots["r1"], "mute", False))
    run.run(until=5.5)
    assert plan not in run.results and run.planner.plans.fleet.robots["r1"].alive


def test_a_robot_that_never_reports_is_lost():
    run = sim(config=PlannerConfig(network=NETWORK, first_report_timeout=6.0))
    run.at(0.001, lambda: setattr(run.robots["r1"], "mute", True))
    plan = run.goal("r1", "short", at=1.0)
    run.run(until=8.0)
    assert run.results[plan].error_code is ErrorCode.ROBOT_LOST
