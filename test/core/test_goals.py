"""Goals coming in: what is refused and why, and whose turn it is on a busy robot."""

import math

import pytest
from fleet_sim import NETWORK, FleetSim
from intake_cases import PLANS, refusal, sim

from timely_llm.core import events as ev
from timely_llm.core.config import Limits, PlannerConfig
from timely_llm.protocols.messages import ErrorCode
from timely_llm.protocols.utility import PRESETS, TimeUtility, Urgency

# Refused.


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"instruction": " \n"}, "instruction is empty"),
        ({"instruction": "x" * 1001}, "instruction has 1001 characters: at most 1000"),
        ({"scene": "x" * 4001}, "scene has 4001 characters: at most 4000"),
        ({"ttft": -1.0}, "ttft is -1.0 s: must be 0 to 1e+06 s (0: none)"),
        ({"tpot": math.nan}, "tpot is nan s: must be 0 to 1e+06 s (0: none)"),
        (
            {"time_budget": math.inf},
            "time_budget is inf s: must be 0 to 1e+06 s (0: none)",
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


def test_of_a_goal_that_is_too_long_no_more_is_kept_than_of_one_that_is_not():
    run = sim(config=PlannerConfig(limits=Limits(instruction=20, scene=10)))
    plan = run.goal("r1", "x" * 10_000_000, at=1.0, scene="y" * 10_000_000)
    good = run.goal("r1", "short", at=1.0)
    run.finish()
    assert run.result(plan).error_msg == "instruction has 10000000 characters: at most 20"
    kept = {event.plan_id: event.goal for event in run.events if event.goal is not None}
    assert kept[plan].instruction == "x" * 20 + "… (10000000 characters)"
    assert kept[plan].scene == "y" * 10 + "… (10000000 characters)"
    assert kept[good].instruction == "short"
