"""Goals coming in: what is refused and why, whose turn it is on a busy robot, and cancelling."""

import math

import pytest
from fleet_sim import NETWORK, FleetSim

from timely_llm import events as ev
from timely_llm.goals import Limits, PlannerConfig
from timely_llm.messages import ErrorCode, ExecutionState, WhenBusy
from timely_llm.utility import PRESETS, TimeUtility, Urgency

PLANS = {
    "long": "go(2);go(3);go(1)",
    "short": "go(1)",
    "bad": "go(99)",
}


def sim(**options) -> FleetSim:
    run = FleetSim(PLANS, **options)
    run.add_robot("r1")
    run.add_robot("drone2")
    return run


def refusal(run: FleetSim, plan: str) -> tuple[str, str]:
    """Code and words of a goal that must have ended without a segment, and at once."""
    run.finish()
    result = run.result(plan)
    assert run.segments(plan) == []
    assert (result.num_segments, result.response_time, result.waiting_time) == (0, -1.0, 0.0)
    assert run.story(plan)[-1].split()[1] == "REFUSED"
    return result.error_code.name, result.error_msg


# Refused.


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"instruction": " \n"}, "instruction is empty"),
        ({"instruction": "x" * 1001}, "instruction has 1001 characters: at most 1000"),
        ({"scene": "x" * 4001}, "scene has 4001 characters: at most 4000"),
        ({"ttft": -1.0}, "ttft is -1.0 s: must be finite and at least 0 (0: none)"),
        ({"tpot": math.nan}, "tpot is nan s: must be finite and at least 0 (0: none)"),
        (
            {"time_budget": math.inf},
            "time_budget is inf s: must be finite and at least 0 (0: none)",
        ),
        ({"max_replans": 6}, "max_replans is 6: at most 5"),
    ],
)
def test_a_goal_out_of_its_limits_is_refused_with_field_value_and_limit(fields, message):
    run = sim()
    plan = run.goal("r1", **({"instruction": "short"} | fields), at=1.0)
    assert refusal(run, plan) == ("INVALID_GOAL", message)


def test_goals_at_their_limits_are_taken():
    run = sim(config=PlannerConfig(Limits(instruction=5, scene=3), network=NETWORK))
    plan = run.goal("r1", "short", scene="abc", at=1.0)
    run.finish()
    assert run.result(plan).error_code is ErrorCode.NONE


def test_a_goal_that_could_not_be_read_gets_its_result():
    with pytest.raises(ValueError) as error:
        TimeUtility(1.0, 2.0, 1.0)
    run = sim()
    run.goals["f" * 32] = None
    run.tell(ev.GoalInvalid("f" * 32, str(error.value)), at=1.0)
    run.finish()
    result = run.result("f" * 32)
    assert (result.error_code, result.error_msg) == (
        ErrorCode.INVALID_GOAL,
        "utility.alpha is 2.0/s: must be at most 0",
    )


def test_an_unknown_robot_is_named_with_the_nearest():
    run = sim()
    plan = run.goal("drone3", "short", at=1.0)
    assert refusal(run, plan) == (
        "UNKNOWN_ROBOT",
        "robot_id 'drone3' is not registered; did you mean 'drone2'? (registered: drone2, r1)",
    )


def test_without_robots_the_refusal_says_so():
    run = FleetSim(PLANS)
    plan = run.goal("r1", "short", at=1.0)
    assert refusal(run, plan) == (
        "UNKNOWN_ROBOT",
        "robot_id 'r1' is not registered (registered: none)",
    )


def test_refused_goals_leave_the_others_alone():
    run = sim()
    p = run.goal("drone2", "long", at=1.0)
    for at in (1.01, 1.02, 1.03):
        run.goal("nobody", "short", at=at)
    run.finish()
    undisturbed = sim()
    undisturbed.goal("drone2", "long", at=1.0)
    undisturbed.finish()
    assert run.motions("drone2") == undisturbed.motions("drone2")
    assert run.result(p).error_code is ErrorCode.NONE


def test_the_same_goal_twice_is_one_goal():
    run = sim()
    plan = run.goal("r1", "short", at=1.0)
    run.tell(ev.GoalArrived(plan, run.goals[plan]), at=1.01)
    run.finish()
    assert len(run.motions("r1")) == 1
    assert len(run.story(plan, kinds="ACCEPTED")) == 1


@pytest.mark.parametrize("urgency", [u for u in Urgency if u is not Urgency.UNSPECIFIED])
def test_a_goal_without_a_utility_has_its_urgency_s(urgency):
    run = sim()
    plan = run.goal("r1", "short", at=1.0, urgency=urgency)
    own = run.goal("drone2", "short", at=2.5, utility=TimeUtility(0.0, -1.0, 7.0))
    run.finish()
    response = run.result(plan).response_time
    assert run.result(plan).utility == PRESETS[urgency](response)
    assert run.result(own).utility == pytest.approx(7.0 - run.result(own).response_time)


def test_unspecified_urgency_is_normal():
    run = sim()
    plan = run.goal("r1", "short", at=1.0)
    run.finish()
    assert run.result(plan).utility == PRESETS[Urgency.NORMAL].beta


# Queue.


def test_a_queued_goal_s_clock_starts_when_the_robot_is_free():
    run = sim()
    p = run.goal("r1", "short", at=1.0)
    q = run.goal("r1", "long", at=1.5)
    run.finish()
    ended = next(e.stamp for e in run.events if e.plan_id == p and e.type.name == "ENDED")
    assert run.story(p, q, kinds="QUEUED ENDED STARTED")[1:3] == [
        "1.500 p2 QUEUED",
        f"{ended:.3f} p1 ENDED",
    ]
    assert run.story(q)[2] == f"{ended:.3f} STARTED"
    assert run.result(q).response_time == pytest.approx(0.066)
    assert run.result(q).utility == 1.0


def test_queued_goals_go_in_order_and_know_their_place():
    run = sim()
    ids = [run.goal("r1", "short", at=1.0 + n / 100) for n in range(4)]
    run.finish()
    starts = [run.story(plan, kinds="STARTED")[0] for plan in ids]
    assert starts == sorted(starts)
    places = {plan: [] for plan in ids}
    for _, told in run.feedback:
        if told.state.name == "QUEUED":
            places[told.plan_id].append(told.queue_position)
    assert list(places.values()) == [[], [1], [2, 1], [3, 2, 1]]


def test_whoever_leaves_the_queue_lets_the_others_move_up():
    run = sim()
    ids = [run.goal("r1", "long", at=1.0 + n / 100) for n in range(4)]
    run.cancel(ids[1], at=1.5)
    run.run(1.6)
    last = {f.plan_id: f.queue_position for _, f in run.feedback if f.state.name == "QUEUED"}
    assert (last[ids[2]], last[ids[3]]) == (1, 2)


def test_more_goals_than_may_wait_are_refused():
    run = sim(config=PlannerConfig(Limits(queue=2), network=NETWORK))
    run.goal("r1", "long", at=1.0)
    for n in range(2):
        run.goal("r1", "short", at=1.1 + n / 100)
    plan = run.goal("r1", "short", at=1.2)
    elsewhere = run.goal("drone2", "short", at=1.2)
    assert refusal(run, plan) == ("ROBOT_BUSY", "2 goals wait for robot 'r1': at most 2")
    assert run.result(elsewhere).error_code is ErrorCode.NONE


# Reject and preempt.


def test_reject():
    run = sim()
    run.goal("r1", "long", at=1.0)
    plan = run.goal("r1", "short", at=1.5, when_busy=WhenBusy.REJECT)
    free = run.goal("drone2", "short", at=1.5, when_busy=WhenBusy.REJECT)
    assert refusal(run, plan) == ("ROBOT_BUSY", "robot 'r1' executes another plan")
    assert run.result(free).error_code is ErrorCode.NONE


def preempting(urgency: Urgency, old: Urgency = Urgency.NORMAL, **fields):
    """A goal that preempts a plan which is written and being executed."""
    run = sim()
    p = run.goal("r1", "long", at=1.0, urgency=old)
    q = run.goal(
        "r1",
        **({"instruction": "short"} | fields),
        at=1.5,
        urgency=urgency,
        when_busy=WhenBusy.PREEMPT,
    )
    return run, p, q


def test_a_normal_goal_takes_the_robot_with_its_first_segment():
    run, p, q = preempting(Urgency.NORMAL)
    run.finish()
    assert run.story(p, q)[6:] == [
        "1.500 p2 ACCEPTED",
        "1.500 p2 STARTED",
        "1.567 p1 PREEMPTED",
        "1.567 p1 ENDED PREEMPTED",
        "1.567 p2 SEGMENT 0 'go(1)'",
        "1.587 p2 SEGMENT 1 ''!",
        "2.583 p2 RETURNED",
        "2.583 p2 ENDED",
    ]
    assert run.commands("r1")[4:] == ["1.567 REPLACE 0 'go(1)'", "1.587 RUN 1 ''!"]
    assert run.motions("r1") == ["1.074 go(2)", "1.575 go(1)"]


def test_an_urgent_goal_halts_the_motion_on_acceptance():
    run, p, q = preempting(Urgency.URGENT)
    run.finish()
    assert run.story(p, q)[6:] == [
        "1.500 p2 ACCEPTED",
        "1.500 p1 PREEMPTED",
        "1.500 p2 STARTED",
        "1.516 p1 ENDED PREEMPTED",
        "1.567 p2 SEGMENT 0 'go(1)'",
        "1.587 p2 SEGMENT 1 ''!",
        "2.583 p2 RETURNED",
        "2.583 p2 ENDED",
    ]
    assert run.commands("r1")[4:] == [
        "1.500 CANCEL",
        "1.567 REPLACE 0 'go(1)'",
        "1.587 RUN 1 ''!",
    ]
    assert run.reports("r1", ExecutionState.ABORTED) == ["1.508 ABORTED go(2)"]


@pytest.mark.parametrize(
    ("new", "old", "taken"),
    [
        (Urgency.NORMAL, Urgency.URGENT, False),
        (Urgency.NORMAL, Urgency.CRITICAL, False),
        (Urgency.URGENT, Urgency.CRITICAL, False),
        (Urgency.LOW, Urgency.NORMAL, False),
        (Urgency.URGENT, Urgency.URGENT, True),
        (Urgency.NORMAL, Urgency.UNSPECIFIED, True),
        (Urgency.CRITICAL, Urgency.BACKGROUND, True),
    ],
)
def test_no_goal_preempts_a_more_urgent_one(new, old, taken):
    run, p, q = preempting(new, old)
    run.finish()
    if taken:
        assert run.result(p).error_code is ErrorCode.PREEMPTED
        assert run.result(q).error_code is ErrorCode.NONE
    else:
        assert run.result(p).error_code is ErrorCode.NONE
        assert refusal(run, q) == (
            "OUTRANKED",
            f"robot 'r1' executes a plan of urgency {old.name}: {new.name} does not preempt it",
        )


def test_a_normal_replacement_that_fails_leaves_the_old_plan_at_work():
    run, p, q = preempting(Urgency.NORMAL, instruction="bad")
    after = run.goal("r1", "short", at=2.0)
    run.finish()
    assert run.result(q).error_code is ErrorCode.INVALID_PLAN
    assert run.result(p).error_code is run.result(after).error_code is ErrorCode.NONE
    assert run.story(after, kinds="QUEUED") == ["2.000 QUEUED"]
    assert len(run.motions("r1")) == 4


def test_an_urgent_replacement_that_fails_leaves_the_robot_standing():
    run, p, q = preempting(Urgency.URGENT, instruction="bad")
    after = run.goal("r1", "short", at=5.0)
    run.finish()
    assert run.result(q).error_code is ErrorCode.INVALID_PLAN
    assert run.result(p).error_code is ErrorCode.PREEMPTED
    assert run.motions("r1") == ["1.074 go(2)", f"{run.robots['r1'].body.done[-1][0]:.3f} go(1)"]
    assert run.result(after).error_code is ErrorCode.NONE


def test_goals_that_wait_go_on_waiting_behind_one_that_preempts():
    run, p, q = preempting(Urgency.URGENT)
    w = run.goal("r1", "short", at=1.2)
    run.finish()
    assert [run.result(plan).error_code.name for plan in (p, q, w)] == ["PREEMPTED", "NONE", "NONE"]
    assert len(run.motions("r1")) == 3


def test_preempting_the_one_that_preempts():
    """The second one has sent nothing when the third takes its place: the first runs until then."""
    run, p, q = preempting(Urgency.NORMAL)
    r = run.goal("r1", "short", at=1.52, when_busy=WhenBusy.PREEMPT)
    run.finish()
    assert [run.result(plan).error_code.name for plan in (p, q, r)] == [
        "PREEMPTED",
        "PREEMPTED",
        "NONE",
    ]
    assert [line for line in run.commands("r1") if "REPLACE" in line] == ["1.594 REPLACE 0 'go(1)'"]
    assert len(run.motions("r1")) == 2


def test_a_robot_that_is_being_stopped_is_taken_by_the_next():
    run = sim()
    p = run.goal("r1", "long", at=1.0)
    run.cancel(p, at=1.5)
    q = run.goal("r1", "short", at=1.505, when_busy=WhenBusy.PREEMPT, urgency=Urgency.LOW)
    run.finish()
    assert run.result(p).error_code is ErrorCode.CANCELED
    assert run.result(q).error_code is ErrorCode.NONE
    assert run.story(p, kinds="PREEMPTED") == []


def test_an_old_plan_that_ends_first_leaves_its_robot_to_the_replacement():
    run = sim()
    p = run.goal("r1", "short", at=1.0)
    q = run.goal("r1", "long", at=2.05, when_busy=WhenBusy.PREEMPT)
    w = run.goal("r1", "short", at=2.06)
    run.finish()
    assert [run.result(plan).error_code.name for plan in (p, q, w)] == ["NONE", "NONE", "NONE"]
    assert len(run.motions("r1")) == 5


# Cancelling.


def canceled(at: float, *, before: str = "", **options):
    run = sim(**options)
    if before:
        run.goal("r1", before, at=0.9)
    plan = run.goal("r1", "long", at=1.0)
    run.cancel(plan, at=at)
    return run, plan


def test_cancel_while_queued():
    run, plan = canceled(1.5, before="long")
    run.finish()
    assert run.story(plan) == ["1.000 ACCEPTED", "1.000 QUEUED", "1.500 REFUSED CANCELED"]
    assert run.result(plan).error_msg == "canceled by the client"
    assert len(run.motions("r1")) == 3


def test_cancel_while_running_ends_within_the_step():
    run, plan = canceled(1.01)
    run.finish()
    assert run.story(plan) == ["1.000 ACCEPTED", "1.000 STARTED", "1.010 ENDED CANCELED"]
    assert run.commands("r1") == []
    assert run.busy[-1][1] <= 1.026 + 1e-9


def test_cancel_while_waiting_for_the_engine():
    run = sim(max_batch=1)
    p = run.goal("drone2", "long", at=1.0)
    q = run.goal("r1", "long", at=1.0)
    run.cancel(q, at=1.04)
    run.finish()
    assert run.story(q) == ["1.000 ACCEPTED", "1.040 ENDED CANCELED"]
    assert run.result(p).error_code is ErrorCode.NONE


def test_cancel_while_suspended_stops_the_robot():
    run = sim(max_batch=1)
    p = run.goal("r1", "long", at=1.0)
    q = run.goal("drone2", "long", at=1.0, urgency=Urgency.URGENT)
    run.cancel(p, at=1.1)
    run.finish()
    assert run.story(p) == [
        "1.000 ACCEPTED",
        "1.000 STARTED",
        "1.066 SEGMENT 0 'go(2)'",
        "1.066 SUSPENDED",
        "1.128 ENDED CANCELED",
    ]
    assert run.commands("r1")[-1] == "1.112 CANCEL"
    assert run.motions("r1") == ["1.074 go(2)"]
    assert run.result(q).error_code is ErrorCode.NONE


def test_cancel_while_executing_stops_the_robot():
    run, plan = canceled(2.0)
    run.finish()
    assert run.commands("r1")[-1] == "2.000 CANCEL"
    assert run.story(plan)[-1] == "2.016 ENDED CANCELED"  # there and back
    assert run.result(plan).execution_time == pytest.approx(2.008 - 1.074)
    assert len(run.motions("r1")) == 1


def test_cancel_while_being_stopped_changes_nothing():
    run, plan = canceled(2.0)
    run.cancel(plan, at=2.01)
    run.finish()
    assert [line for line in run.commands("r1") if "CANCEL" in line] == ["2.000 CANCEL"]
    assert run.story(plan)[-1] == "2.016 ENDED CANCELED"


def test_cancel_of_a_goal_that_has_ended_or_never_was_is_nothing():
    run = sim()
    plan = run.goal("r1", "short", at=1.0)
    run.finish()
    log = len(run.log)
    run.cancel(plan, at=10.0)
    run.cancel("e" * 32, at=10.0)
    run.run(11.0)
    assert len(run.log) == log


def test_a_goal_canceled_before_its_robot_has_spoken_ends_at_once():
    """Its segments still wait for the robot, and never reach it."""
    run = sim(config=PlannerConfig(network=NETWORK, first_report_timeout=6.0))
    run.at(0.001, lambda: setattr(run.robots["r1"], "mute", True))
    plan = run.goal("r1", "long", at=1.0)
    run.cancel(plan, at=2.0)
    run.run(until=2.1)
    assert run.story(plan)[-1] == "2.000 ENDED CANCELED"
    assert run.result(plan).error_msg == "canceled by the client"
    assert [line for line in run.commands("r1") if "CANCEL" in line] == ["2.000 CANCEL"]


def test_a_lost_abort_is_made_up_for_by_the_next_heartbeat():
    run, plan = canceled(2.0)
    run.lose = lambda robot_id, message: getattr(message, "state", None) is ExecutionState.ABORTED
    run.finish()
    assert run.story(plan)[-1] == "2.016 ENDED CANCELED"
    assert run.result(plan).error_msg == "canceled by the client"


def test_a_robot_that_does_not_confirm_its_stop_is_told_again():
    run, plan = canceled(2.0, config=PlannerConfig(network=NETWORK, stop_timeout=2.0))
    run.lose = lambda robot_id, message: getattr(message, "command", None) and run.now < 3.0
    run.finish()
    assert run.story(plan)[-1] == "4.000 ENDED CANCELED"
    assert run.result(plan).error_msg == (
        "canceled by the client; the robot did not confirm that it stands still"
    )
    cancels = [line for line in run.commands("r1") if "CANCEL" in line]
    assert cancels == ["2.000 CANCEL", "4.082 CANCEL"]  # upon its next heartbeat
    assert run.reports("r1", ExecutionState.ABORTED) == ["4.090 ABORTED go(3)"]


# Deactivate and activate.


def test_deactivating_ends_every_goal_and_halts_every_robot():
    run = sim()
    ids = [run.goal("r1", "long", at=1.0), run.goal("r1", "short", at=1.1)]
    ids.append(run.goal("drone2", "short", at=1.99))
    run.tell(ev.Deactivate("going home"), at=2.0)
    refused = run.goal("r1", "short", at=3.0)
    run.finish()
    for plan in ids:
        assert run.result(plan).error_code is ErrorCode.PLANNER_INACTIVE
        assert run.result(plan).error_msg == "going home"
    assert run.commands("r1")[-1] == "2.017 CANCEL"  # when the step is over
    assert run.result(refused).error_msg == "the planner is not active"
    assert run.planner.plans.live == {}
    assert len(run.motions("r1")) == 1


def test_activating_accepts_goals_again():
    run = sim()
    run.goal("r1", "long", at=1.0)
    run.tell(ev.Deactivate(), at=2.0)
    run.tell(ev.Activate(), at=2.5)
    plan = run.goal("r1", "short", at=2.6)
    run.finish()
    assert run.result(plan).error_code is ErrorCode.NONE
    assert len(run.motions("r1")) == 2
