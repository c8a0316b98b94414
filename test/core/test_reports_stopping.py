"""Stopping robots, by the planner and by themselves."""

from fleet_sim import NETWORK, FleetSim
from report_cases import PLANS, lose, outcome, sim

from robot_adapters.executor.executor import RobotExecutor
from timely_llm.core import events as ev
from timely_llm.protocols.messages import ErrorCode, SegmentCommand


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


UNDONE = "the robot did not confirm the halt: adapter: stuck"


def stuck(run: FleetSim, robot_id: str, until: float) -> None:
    """Have the robot's halt fail until then."""
    body = run.robots[robot_id].body
    works = body.halt

    def halt(now: float) -> None:
        if now < until:
            raise RuntimeError("stuck")
        works(now)

    body.halt = halt


def test_a_canceled_goal_says_that_its_robot_has_not_halted():
    run = sim()
    stuck(run, "r1", until=5.0)
    plan = run.goal("r1", "long", at=1.0)
    run.cancel(plan, at=2.0)
    early = run.goal("r1", "short", at=3.0)
    late = run.goal("r1", "short", at=6.0)
    run.finish()
    code, words = outcome(run, plan)
    assert code == "CANCELED" and words.endswith(f"canceled; {UNDONE}")
    assert outcome(run, early) == ("SEGMENT_REFUSED", f"robot 'r1' refused segment 0: {UNDONE}")
    assert run.result(late).error_code is ErrorCode.NONE


def test_a_stop_is_sent_again_until_the_robot_has_halted():
    run = sim()
    stuck(run, "r1", until=8.0)
    run.goal("r1", "long", at=1.0)
    run.ask(lambda t: ev.StopRobots(t, "r1"), at=2.0)
    run.run(12.0)
    stops = [float(line.split()[0]) for line in run.commands("r1") if "STOP" in line]
    assert len(stops) > 2 and 6.0 < stops[-1] < 8.0
    assert run.robots["r1"].executor.adapter.unconfirmed == ""
    assert run.planner.state.fleet.find("r1").stopped
