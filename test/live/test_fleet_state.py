"""The state of a fleet after messages, and what is shown of it: exact, on the test's own clock."""

from __future__ import annotations

import json

from fleets import P1, P2, P3, P4, ROBOTS, STATUS, accepted, busy, ended, event, reports, segment
from hypothesis import given, settings
from hypothesis import strategies as st

from timely_llm.live.fleet_state import (
    KEPT,
    LIVE,
    MISSED,
    RATE_WINDOW,
    SEGMENTS,
    SEGMENTS_TEXT,
    FleetState,
)
from timely_llm.live.prometheus import exposition
from timely_llm.live.terminal_text import detail_text, engine_text, planner_text
from timely_llm.live.view import detail, view
from timely_llm.protocols.messages import (
    NO_PLAN,
    ErrorCode,
    Execution,
    ExecutionState,
    PlanEvent,
    PlanEventType,
    PlanGoal,
    PlannerStatus,
    PlanResult,
    SkillCall,
)


def plan_of(fleet: FleetState, robot: str, now: float) -> dict:
    return next(r for r in view(fleet, now)["robots"] if r["id"] == robot)["plan"]


def states(plan: dict) -> list[tuple[str, str]]:
    return [(segment["text"], segment["state"]) for segment in plan["segments"]]


def test_an_empty_board_says_that_nothing_was_heard() -> None:
    shown = view(FleetState(), 5.0)
    assert shown["planner"] == {"state": "unheard"}
    assert (shown["robots"], shown["queue"], shown["results"]) == ([], [], [])
    assert shown["totals"]["response_s"] is None


def test_the_picture_of_a_busy_fleet() -> None:
    shown = view(busy(), 10.0)
    assert shown["planner"] == {
        "state": "running", "silent_s": 0.0, "policy": "least_loss", "model": "tiny_planner",
        "engine": "simulated 1", "pace": "rtx4090-llama3-8b",
    }  # fmt: skip
    assert shown["engine"] == {
        "waiting": 1, "running": 1, "suspended": 0, "executing": 0, "kv_used": 30,
        "kv_total": 1000, "kv_share": 0.03, "step_ms": 21.5, "overhead_ms": 0.7,
        "tokens_per_s": 3.0, "recomputed": 0,
    }  # fmt: skip
    robots = {robot["id"]: robot for robot in shown["robots"]}
    assert [robot["state"] for robot in shown["robots"]] == ["alive", "stopped", "silent"]
    drone = robots["drone_1"]
    assert (drone["horizon_s"], drone["queued"]) == (3.0, 1)
    assert robots["arm_1"]["horizon_s"] is None
    assert states(drone["plan"]) == [
        ("tc(90)", "done"), (";?s('cat')", "running"), ("==True{g('cat')}", "sent"),
    ]  # fmt: skip
    assert (drone["plan"]["call"], drone["plan"]["tokens"]) == ("s(cat)", 15)
    # From the goal (6.0) to the start of the first call that was heard of (8.0).
    assert (drone["plan"]["waiting_s"], drone["plan"]["waits"]) == (2.0, False)
    assert shown["queue"] == [
        {"plan_id": P4, "robot": "drone_1", "urgency": "low", "instruction": "Land",
         "state": "queued", "age_s": 0.5},
    ]  # fmt: skip
    assert [(r["plan_id"], r["code"], r["words"]) for r in shown["results"]] == [
        (P3, "NONE", ""), (P2, "SKILL_FAILED", "mf(9): out of range"),
    ]  # fmt: skip
    assert shown["totals"] == {
        "plans": 2, "succeeded": 1, "utility": 0.75, "response_s": 0.375, "waiting_s": 0.47,
    }  # fmt: skip
    assert json.loads(json.dumps(shown, allow_nan=False)) == shown


def test_the_detail_of_a_plan() -> None:
    fleet = busy()
    shown = detail(fleet, P2, 10.0)
    assert (shown["robot"], shown["state"], shown["over"]) == ("drone_2", "skill_failed", True)
    assert shown["result"]["words"] == "mf(9): out of range"
    assert "result" not in detail(fleet, P1, 10.0)
    assert detail(fleet, NO_PLAN, 10.0) is None


def test_a_robot_waits_from_the_end_of_a_call_to_the_next() -> None:
    fleet = busy()
    reports(fleet, P1, "drone_1", ExecutionState.SUCCEEDED, 10.0, segment=1)
    plan = plan_of(fleet, "drone_1", 10.5)
    assert (plan["waiting_s"], plan["waits"], plan["call"]) == (2.5, True, "")
    assert states(plan)[1] == (";?s('cat')", "done")
    reports(fleet, P1, "drone_1", ExecutionState.STARTED, 11.0, segment=2)
    assert plan_of(fleet, "drone_1", 20.0)["waiting_s"] == 3.0


def test_a_robot_with_nothing_to_do_has_no_horizon() -> None:
    fleet = busy()
    reports(fleet, NO_PLAN, "drone_1", ExecutionState.IDLE, 10.0, total_remaining=0.0)
    assert view(fleet, 10.0)["robots"][0]["horizon_s"] is None


def test_a_robots_own_words_stay_until_it_reports_again() -> None:
    fleet = busy()
    reports(fleet, NO_PLAN, "drone_2", ExecutionState.IDLE, 10.0, error="stopped")
    assert view(fleet, 10.0)["robots"][1]["error"] == "stopped"
    reports(fleet, NO_PLAN, "drone_2", ExecutionState.IDLE, 10.0)
    assert view(fleet, 10.0)["robots"][1]["error"] == ""


def test_a_plan_that_began_before_we_listened_is_shown_from_there() -> None:
    fleet = FleetState()
    fleet.follow_robots(ROBOTS)
    segment(fleet, P1, "drone_1", 3, "mf(10)", 1.0)
    reports(fleet, P1, "drone_1", ExecutionState.RUNNING, 1.0, segment=3)
    plan = plan_of(fleet, "drone_1", 1.0)
    assert plan["instruction"] == MISSED
    assert states(plan) == [(MISSED, "done")] * 3 + [("mf(10)", "running")]


def test_of_a_segment_that_comes_again_the_last_one_counts() -> None:
    fleet = busy()
    segment(fleet, P1, "drone_1", 1, ";mu(20)", 10.0)
    assert [text for text, _ in states(plan_of(fleet, "drone_1", 10.0))] == ["tc(90)", ";mu(20)"]


def test_a_replan_goes_on_counting_and_the_old_plan_is_seen_to_have_failed() -> None:
    fleet = busy()
    result = PlanResult(P1, ErrorCode.SKILL_FAILED, "s: nothing there")
    replanned = event(P1, "drone_1", PlanEventType.REPLANNED, segment=3, result=result)
    fleet.follow_event(replanned, 10.0)
    plan = plan_of(fleet, "drone_1", 10.5)
    assert (plan["state"], plan["failures"]) == ("replanning", ["s: nothing there"])
    assert (plan["waits"], plan["call"], plan["over"]) == (True, "", False)
    segment(fleet, P1, "drone_1", 3, "mu(20)", 11.0)
    segment(fleet, P1, "drone_1", 4, ";l()", 11.0)
    reports(fleet, P1, "drone_1", ExecutionState.STARTED, 12.0, segment=3)
    shown = [state for _, state in states(plan_of(fleet, "drone_1", 12.0))]
    assert shown == ["done", "failed", "dropped", "running", "sent"]
    assert detail(fleet, P1, 12.0)["failures"] == ["s: nothing there"]


def test_the_segment_that_a_plan_failed_in_is_marked() -> None:
    fleet = busy()
    failed = PlanResult(P1, ErrorCode.SKILL_FAILED, "s: nothing there")
    ended(fleet, failed, "drone_1", 10.0)
    shown = states(detail(fleet, P1, 10.0))
    assert [state for _, state in shown] == ["done", "failed", "sent"]
    assert plan_of(fleet, "drone_1", 10.0)["plan_id"] == P4  # that is what it does next


def test_another_planner_ends_the_plans_of_the_old_one() -> None:
    fleet = busy()
    fleet.follow_status(PlannerStatus(instance="cd" * 16), 11.0)
    shown = view(fleet, 11.0)
    assert shown["queue"] == []
    assert {r["plan_id"]: r["code"] for r in shown["results"]} == {
        P1: "PLANNER_INACTIVE", P4: "PLANNER_INACTIVE", P2: "SKILL_FAILED", P3: "NONE",
    }  # fmt: skip


def test_a_late_event_of_a_plan_that_is_over_changes_nothing() -> None:
    fleet = busy()
    before = view(fleet, 10.0)
    fleet.follow_event(event(P2, "drone_2", PlanEventType.SUSPENDED), 10.0)
    assert view(fleet, 10.0) == before


def test_a_silent_planner_is_said_to_be_silent() -> None:
    assert view(busy(), 12.7)["planner"]["state"] == "running"
    assert view(busy(), 13.8)["planner"]["silent_s"] == 4.0


def test_tokens_per_second_are_those_of_the_last_five() -> None:
    fleet = busy()  # 5 tokens at 7, 8 and 9 s
    assert [fleet.tokens_per_second(now) for now in (9.0, 12.0, 13.5, 14.0)] == [3.0, 2.0, 1.0, 0.0]


def test_a_board_stays_small() -> None:
    fleet = FleetState()
    for number in range(3 * KEPT):
        plan_id = f"{number:032x}"
        accepted(fleet, plan_id, "drone_1", "Go", float(number))
        ended(fleet, PlanResult(plan_id), "drone_1", float(number))
    assert (len(fleet.live), len(fleet.over)) == (0, KEPT)
    assert fleet.counters.results.total() == 3 * KEPT


WITH_RESULT = (
    *(PlanEventType.REFUSED, PlanEventType.RETURNED, PlanEventType.ENDED),
    PlanEventType.REPLANNED,
)
IDS = st.sampled_from((P1, P2, P3))
NAMES = st.sampled_from(("drone_1", "arm_1", "nobody"))
ACTS = st.one_of(
    st.builds(
        lambda plan_id, robot, kind, index, text, code: PlanEvent(
            plan_id, robot, kind, segment=index, text=text, tokens=index,
            goal=PlanGoal(robot, text) if kind is PlanEventType.ACCEPTED else None,
            result=PlanResult(plan_id, code) if kind in WITH_RESULT else None,
        ),
        IDS, NAMES, st.sampled_from(PlanEventType), st.integers(0, 5), st.text(max_size=3),
        st.sampled_from(ErrorCode),
    ),
    st.tuples(
        NAMES,
        st.builds(
            Execution, st.just(1), st.just(1), st.one_of(IDS, st.just(NO_PLAN)),
            st.sampled_from(ExecutionState), st.integers(0, 5), total_remaining=st.floats(0, 9),
        ),
    ),
    st.sampled_from((STATUS, PlannerStatus(instance="ef" * 16))),
    st.sampled_from((ROBOTS, ROBOTS[:1], ())),
)  # fmt: skip


@given(st.lists(ACTS, max_size=30))
def test_whatever_comes_in_whatever_order_can_be_shown(acts: list) -> None:
    """Each plan is on the fleet once, and everything shown is plain JSON."""
    fleet = FleetState()
    for number, act in enumerate(acts):
        now = number / 4
        if isinstance(act, PlanEvent):
            fleet.follow_event(act, now)
        elif isinstance(act, PlannerStatus):
            fleet.follow_status(act, now)
        elif act and isinstance(act[-1], Execution):
            fleet.follow_execution(*act, now)
        else:
            fleet.follow_robots(act)
        over = [plan.plan_id for plan in fleet.over]
        assert len({*over, *fleet.live}) == len(over) + len(fleet.live)
        shown = view(fleet, now)
        assert json.loads(json.dumps(shown, allow_nan=False)) == shown
        assert all(plan.waiting(now) >= 0 for plan in fleet.live.values())
        exposition(fleet, now)


FORGED = st.one_of(st.floats(), st.sampled_from((1e308, -1e308, float("inf"), float("nan"))))
WORDS = st.one_of(st.text(max_size=9), st.sampled_from(("\x1b[2J", "\ud800", "x" * 100_000)))
INDICES = st.sampled_from((0, 1, 7, 2**31, 2**32 - 1))
FORGED_ACTS = st.one_of(
    st.builds(
        lambda plan_id, kind, index, text, code, one, two: PlanEvent(
            plan_id, "drone_1", kind, segment=index, text=text, tokens=index, horizon=one,
            step_times=(one, two), goal=PlanGoal("drone_1", text, text),
            result=PlanResult(
                plan_id, code, text, text, text, index, one, two, one, two, index, index
            ),
        ),
        IDS, st.sampled_from(PlanEventType), INDICES, WORDS, st.sampled_from(ErrorCode), FORGED,
        FORGED,
    ),
    st.builds(
        lambda plan_id, state, index, text, one, two: Execution(
            2**64 - 1, 2**64 - 1, plan_id, state, index, SkillCall(text, (text,), (text,), one),
            index, one, two, one, error=text, stamp=two,
        ),
        IDS, st.sampled_from(ExecutionState), INDICES, WORDS, FORGED, FORGED,
    ),
    st.builds(
        lambda text, count, total, one, two: PlannerStatus(
            "ab" * 16, text, text, text, text, count, count, count, count, count, count, total,
            one, two, count, one,
        ),
        WORDS, INDICES, INDICES, FORGED, FORGED,
    ),
)  # fmt: skip


@settings(deadline=None)
@given(st.lists(FORGED_ACTS, max_size=12))
def test_no_forged_message_ends_what_shows_the_fleet(acts: list) -> None:
    """Numbers that cannot be are null and nothing else; what is shown goes on."""
    fleet = FleetState()
    fleet.follow_robots(ROBOTS)
    for number, act in enumerate(acts):
        now = number / 4
        match act:
            case PlanEvent():
                fleet.follow_event(act, now)
            case Execution():
                fleet.follow_execution("drone_1", act, now)
            case _:
                fleet.follow_status(act, now)
        shown = view(fleet, now)
        assert len(json.dumps(shown, allow_nan=False)) < 1_000_000
        planner_text(shown["planner"], ""), engine_text(shown["engine"])
        for plan_id in (P1, P2, P3):
            if (plan := detail(fleet, plan_id, now)) is not None:
                json.dumps(plan, allow_nan=False)
                detail_text(plan)
        exposition(fleet, now)


def test_what_is_not_known_is_not_nothing() -> None:
    """A robot that says that it is busy for an infinite time is busy; a forged utility counts in
    no sum."""
    fleet = busy()
    reports(fleet, P1, "drone_1", ExecutionState.RUNNING, 10.0, total_remaining=float("inf"))
    ended(fleet, PlanResult(P1, response_time=0.5, utility=1e308), "drone_1", 10.0)
    ended(fleet, PlanResult(P4, response_time=float("nan"), utility=2.0), "drone_1", 10.0)
    shown = view(fleet, 10.0)
    robots = {robot["id"]: (robot["busy"], robot["horizon_s"]) for robot in shown["robots"]}
    assert robots == {"drone_1": (True, None), "drone_2": (False, None), "arm_1": (False, None)}
    assert [(r["utility"], r["response_s"]) for r in shown["results"][:2]] == [
        (2.0, None), (None, 0.5),
    ]  # fmt: skip
    assert shown["totals"]["utility"] == 2.75
    assert shown["totals"]["plans"] == 4


def test_what_is_kept_is_bounded_whatever_comes() -> None:
    """Goals that never end, plans of endless segments, one that is planned again for ever, and
    tokens that nobody asks for."""
    fleet = FleetState()
    for number in range(LIVE + 10):
        accepted(fleet, f"{number:032x}", "drone_1", "x" * 10_000_000, float(number))
    assert len(fleet.live) == LIVE
    assert f"{9:032x}" not in fleet.live, "the oldest are forgotten"
    plan = fleet.sent(P1, PlanGoal("drone_1", "Go"), 0.0)
    result = PlanResult(P1, ErrorCode.SKILL_FAILED, "no")
    for number in range(SEGMENTS + 10):
        segment(fleet, P1, "drone_1", number, "m" * 1000, float(number))
        replanned = event(P1, "drone_1", PlanEventType.REPLANNED, segment=number, result=result)
        fleet.follow_event(replanned, float(number))
    assert len(plan.segments) == SEGMENTS
    assert sum(map(len, plan.segments)) < 2 * SEGMENTS_TEXT
    assert len(plan.failures) <= 100
    assert len(plan.goal.instruction) < 5000
    assert len(fleet._generated) <= RATE_WINDOW + 1


def change(kind: PlanEventType, **fields) -> PlanEvent:
    return PlanEvent("p", "d1", kind, **fields)


def told(state: ExecutionState, **fields) -> Execution:
    return Execution(1, 0, "p", state, call=SkillCall("mf", ("100",), ("100",)), **fields)


def test_a_robot_s_waiting_is_counted() -> None:
    fleet = FleetState()
    plan = fleet.sent("p", PlanGoal("d1", "go"), 0.0)
    log = []

    def note(now: float) -> None:
        log.append((now, plan.state, plan.call, round(plan.waiting(now), 3)))

    fleet.follow_event(change(PlanEventType.ACCEPTED), 0.0)
    fleet.follow_event(change(PlanEventType.QUEUED), 0.0)
    note(5.0)  # it waits for its robot, not the robot for it
    fleet.follow_event(change(PlanEventType.STARTED), 5.0)
    fleet.follow_event(change(PlanEventType.SEGMENT, text="mf(100)"), 5.2)
    note(5.3)
    fleet.follow_execution("d1", told(ExecutionState.STARTED), 5.4)
    fleet.follow_event(change(PlanEventType.SUSPENDED), 5.5)
    note(6.0)
    fleet.follow_execution("d1", told(ExecutionState.SUCCEEDED), 7.0)
    fleet.follow_execution("d1", told(ExecutionState.IDLE), 7.0)
    fleet.follow_event(change(PlanEventType.RESUMED), 7.2)
    note(7.5)
    fleet.follow_event(change(PlanEventType.SEGMENT, segment=1, text=";", last=True), 7.5)
    fleet.follow_execution("other", told(ExecutionState.STARTED), 7.5)  # not its robot
    fleet.follow_execution("d1", told(ExecutionState.PLAN_RETURNED), 7.6)
    fleet.follow_event(change(PlanEventType.ENDED), 7.7)
    note(9.0)
    fleet.follow_execution("d1", told(ExecutionState.IDLE), 9.0)
    note(10.0)
    assert log == [
        (5.0, "queued", "", 0.0),
        (5.3, "writing", "", 0.3),
        (6.0, "suspended", "mf(100)", 0.4),
        (7.5, "writing", "", 0.9),
        (9.0, "ended", "", 1.0),
        (10.0, "ended", "", 1.0),
    ]
    assert plan.segments == ["mf(100)", ";"]


def test_a_robot_s_current_plan_is_the_one_at_work_and_those_after_it_are_counted() -> None:
    fleet = FleetState()
    plans = {name: fleet.sent(name, PlanGoal("d1", name), 0.0) for name in "abc"}
    assert fleet.current("d2") == (None, 0)
    assert fleet.current("d1") == (plans["a"], 2)
    fleet.follow_event(PlanEvent("b", "d1", PlanEventType.STARTED), 1.0)
    assert fleet.current("d1") == (plans["b"], 2)
    for name in "abc":
        fleet.follow_event(PlanEvent(name, "d1", PlanEventType.ENDED), 2.0)
    assert fleet.current("d1") == (plans["c"], 0)
