"""The hub and its loop, with robots, on virtual time: what is computed when, and what is sent.

Times are worked out by hand: a decode step takes 20 ms and 10 ms more for each further sequence,
a prompt token 1 ms, the network 8 ms. ``go(2)`` has four tokens, the first of them comes with the
prompt: three tokens, as the goal's is one and two of the fixed prompt fill no block.
"""

import pytest
from fleet_sim import NETWORK, STEP, FleetSim, is_text
from planner_cases import PLANS, choosing, sim
from sim_parts import tokens_of

from timely_llm import policies
from timely_llm.policies import Decision
from timely_llm.protocols.messages import NO_PLAN, ErrorCode, ExecutionState, SegmentCommand
from timely_llm.protocols.utility import Urgency

# One plan.


def test_one_plan_from_goal_to_result():
    run = sim()
    plan = run.goal("r1", "a", at=1.0)
    run.finish()
    assert run.story(plan) == [
        "1.000 ACCEPTED",
        "1.000 STARTED",
        "1.063 SEGMENT 0 'go(2)'",
        "1.163 SEGMENT 1 ';go(3)'",
        "1.323 SEGMENT 2 \";say('hi')\"!",
        "6.080 RETURNED",
        "6.080 ENDED",
    ]
    assert run.commands("r1") == [
        "1.063 RUN 0 'go(2)'",
        "1.163 RUN 1 ';go(3)'",
        "1.323 RUN 2 \";say('hi')\"!",
    ]
    assert run.motions("r1") == ["1.071 go(2)", "3.071 go(3)", "6.071 say(hi)"]
    result = run.result(plan)
    assert (result.error_code, result.error_msg) == (ErrorCode.NONE, "")
    assert result.plan == PLANS["a"]
    assert (result.num_segments, result.prompt_tokens, result.generated_tokens) == (3, 7, 17)
    assert result.response_time == pytest.approx(0.063)
    assert result.execution_time == pytest.approx(5.001)
    assert result.waiting_time == pytest.approx(0.063 + 2 * NETWORK)
    assert result.utility == 1.0


def test_events_carry_what_an_evaluation_needs():
    run = sim()
    plan = run.goal("r1", "a", at=1.0)
    run.finish()
    events = {(e.type.name, e.segment): e for e in run.events}
    assert events["ACCEPTED", 0].goal == run.goals[plan]
    first, last = events["SEGMENT", 0], events["SEGMENT", 2]
    assert (first.tokens, len(first.step_times)) == (4, 4)
    assert first.step_times == pytest.approx((0.003, 0.02, 0.02, 0.02))
    assert (last.tokens, last.last) == (8, True)
    assert events["ENDED", 0].result == run.result(plan)
    assert {e.robot_id for e in run.events} == {"r1"}


def test_calls_are_sent_with_their_expected_duration():
    run = sim()
    run.goal("r1", "a", at=1.0)
    run.finish()
    calls = [[(c.name, c.arguments, c.expected_duration) for c in s.calls] for _, _, s in run.sent]
    assert calls == [[("go", ("2",), 2.0)], [("go", ("3",), 3.0)], [("say", ("'hi'",), 0.001)]]


def test_feedback_tells_the_client_how_far_its_goal_is():
    run = sim()
    run.goal("r1", "a", at=1.0)
    run.finish()
    told = [(round(at, 3), f.state.name, f.segment, f.text) for at, f in run.feedback]
    assert told == [
        (1.0, "WAITING", 0, ""),
        (1.003, "GENERATING", 0, ""),
        (1.063, "GENERATING", 0, "go(2)"),
        (1.083, "GENERATING", 0, ""),  # the robot has begun
        (1.163, "GENERATING", 1, ";go(3)"),
        (1.323, "GENERATING", 2, ";say('hi')"),
        (3.079, "EXECUTING", 2, ""),
        (6.079, "EXECUTING", 2, ""),
    ]
    remaining = [round(f.estimated_time_remaining, 3) for _, f in run.feedback]
    assert remaining == [0.0, 0.0, 2.008, 2.0, 4.916, 4.757, 3.0, 0.001]


def test_a_plan_that_is_empty_is_no_plan():
    run = sim()
    plan = run.goal("r1", "nothing", at=1.0)
    run.finish()
    assert run.result(plan).error_code is ErrorCode.INVALID_PLAN
    assert run.commands("r1") == []


def test_the_engine_is_not_stepped_while_nothing_may_run():
    run = sim()
    run.goal("r1", "a", at=1.0)
    run.finish()
    assert run.busy[-1] == pytest.approx((1.303, 1.323))  # the robot is done at 6.072


def test_the_same_run_gives_the_same_log():
    def log() -> list:
        run = sim("r1", "r2", max_batch=1)
        run.goal("r1", "a", at=1.0)
        run.goal("r2", "long", at=1.0, urgency=Urgency.URGENT)
        run.goal("r2", "b", at=1.0)
        return run.finish().log

    assert log() == log()


@pytest.mark.parametrize("policy", policies.names())
def test_segments_joined_are_the_plan(policy):
    run = sim("r1", "r2", policy=policy)
    ids = {run.goal(r, i, at=1.0): PLANS[i] for r, i in (("r1", "a"), ("r2", "long"), ("r1", "b"))}
    run.finish()
    for plan, text in ids.items():
        assert run.result(plan).error_code is ErrorCode.NONE
        assert "".join(run.segments(plan)) == run.result(plan).plan == text


def test_an_engine_that_schedules_ahead_gives_the_same_plans():
    """A token that comes when its plan is suspended already opens the next segment."""
    run = sim("r1", "r2", max_batch=1, lag=True)
    p = run.goal("r1", "long", at=1.0)
    q = run.goal("r2", "a", at=1.0)
    run.finish()
    for plan, instruction in ((p, "long"), (q, "a")):
        assert "".join(run.segments(plan)) == run.result(plan).plan == PLANS[instruction]
    kinds = {line.split(" ", 1)[1] for line in run.story(p, q)}
    assert {"p1 SUSPENDED", "p1 RESUMED", "p2 SUSPENDED"} <= kinds


# Suspending and resuming.


def test_two_plans_take_turns_at_segment_boundaries():
    run = sim("r1", "r2", max_batch=1)
    p = run.goal("r1", "a", at=1.0)
    q = run.goal("r2", "b", at=1.05)
    run.finish()
    assert run.story(p, q)[:13] == [
        "1.000 p1 ACCEPTED",
        "1.000 p1 STARTED",
        "1.063 p1 SEGMENT 0 'go(2)'",
        "1.050 p2 ACCEPTED",  # received inside a step, handled behind it
        "1.063 p1 SUSPENDED",
        "1.063 p2 STARTED",
        "1.126 p2 SEGMENT 0 'go(1)'",
        "1.226 p2 SEGMENT 1 ';go(1)'",  # r2 runs dry before r1
        "1.226 p1 RESUMED",
        "1.226 p2 SUSPENDED",
        "1.326 p1 SEGMENT 1 ';go(3)'",
        "1.326 p1 SUSPENDED",
        "1.326 p2 RESUMED",
    ]
    assert run.result(q).response_time == pytest.approx(0.076)  # from when it was received


def starved(run: FleetSim, robot_id: str) -> list[float]:
    """When a robot stood still in the middle of a plan."""
    return [
        at
        for at, robot, report in run.reported
        if robot == robot_id and report.state is ExecutionState.IDLE and report.plan_id != NO_PLAN
    ]


def test_suspended_plans_are_resumed_before_their_robots_run_dry():
    """Four robots on an engine of batch 1: a segment takes 0.1 s to write and 2 s to execute."""
    robots = ["r1", "r2", "r3", "r4"]
    run = sim(*robots, max_batch=1)
    ids = [run.goal(robot_id, "long", at=1.0) for robot_id in robots]
    run.finish()
    suspended = run.story(*ids, kinds="SUSPENDED")
    assert len(suspended) >= 4
    for robot_id, plan in zip(robots, ids, strict=True):
        assert run.result(plan).error_code is ErrorCode.NONE
        assert starved(run, robot_id) == []
        # It waited for the first segment alone.
        response = run.result(plan).response_time
        assert run.result(plan).waiting_time == pytest.approx(response + 2 * NETWORK)


def test_a_robot_that_does_run_dry_says_so_and_goes_on():
    """Written at 0.1 s a segment, executed in 0.1 s: two robots are too many for batch 1."""
    plans = {"a": ";".join(["go(0.1)"] * 6), "b": ";".join(["go(0.1)"] * 6)}
    run = sim("r1", "r2", max_batch=1, plans=plans)
    p = run.goal("r1", "a", at=1.0)
    q = run.goal("r2", "b", at=1.0, urgency=Urgency.URGENT)
    run.finish()
    assert starved(run, "r1") and starved(run, "r2")
    assert run.result(p).error_code is run.result(q).error_code is ErrorCode.NONE
    assert len(run.motions("r1")) == len(run.motions("r2")) == 6
    horizons = [e.horizon for e in run.events if e.type.name == "RESUMED"]
    assert -1.0 in horizons  # dry when it was resumed


def test_an_urgent_goal_takes_the_engine_at_the_next_boundary_not_before():
    run = sim("r1", "r2", max_batch=1)
    p = run.goal("r1", "a", at=1.0, urgency=Urgency.BACKGROUND)
    q = run.goal("r2", "b", at=1.02, urgency=Urgency.URGENT)
    run.finish()
    assert run.story(p, q) == [
        "1.000 p1 ACCEPTED",
        "1.000 p1 STARTED",
        "1.020 p2 ACCEPTED",
        "1.063 p1 SEGMENT 0 'go(2)'",
        "1.063 p1 SUSPENDED",
        "1.063 p2 STARTED",
        "1.126 p2 SEGMENT 0 'go(1)'",
        "1.226 p2 SEGMENT 1 ';go(1)'",
        "1.246 p2 SEGMENT 2 ''!",
        "1.246 p1 RESUMED",
        "1.346 p1 SEGMENT 1 ';go(3)'",
        "1.506 p1 SEGMENT 2 \";say('hi')\"!",
        "3.142 p2 RETURNED",
        "3.142 p2 ENDED",
        "6.080 p1 RETURNED",
        "6.080 p1 ENDED",
    ]


def test_a_prompt_that_is_computed_in_chunks_is_not_interrupted_either():
    run = sim("r1", "r2", max_batch=1, prefill_chunk=2, plans={"goal a": "go(2)", "b": "go(1)"})
    p = run.goal("r1", "goal a", at=1.0, urgency=Urgency.BACKGROUND)
    q = run.goal("r2", "b", at=1.001, urgency=Urgency.URGENT)
    run.finish()
    assert run.story(p, q)[:5] == [
        "1.000 p1 ACCEPTED",
        "1.000 p1 STARTED",
        "1.001 p2 ACCEPTED",
        "1.068 p1 SEGMENT 0 'go(2)'",
        "1.068 p1 SUSPENDED",
    ]


def test_no_prompt_token_is_computed_again_on_resume():
    run = sim("r1", "r2", max_batch=1)
    run.goal("r1", "long", at=1.0)
    run.goal("r2", "long", at=1.0)
    run.finish()
    assert run.planner.recomputed_tokens == 0
    assert sum(end - begin for begin, end in run.busy) == pytest.approx(
        0.006  # the fixed prompt
        + 2 * (6 - 4 + 4) * 0.001  # the goals' words
        + 2 * (len(tokens_of(PLANS["long"])) + 1 - 1) * 0.02
    )


# Baselines.


def test_vllm_sends_one_segment_with_the_whole_plan():
    run = sim("r1", "r2", policy="vllm", max_batch=1)
    p = run.goal("r1", "a", at=1.0)
    q = run.goal("r2", "b", at=1.02, urgency=Urgency.URGENT)
    run.finish()
    assert run.story(p, q)[:6] == [
        "1.000 p1 ACCEPTED",
        "1.000 p1 STARTED",
        "1.020 p2 ACCEPTED",
        "1.323 p1 SEGMENT 0 \"go(2);go(3);say('hi')\"!",
        "1.323 p2 STARTED",
        "1.506 p2 SEGMENT 0 'go(1);go(1)'!",
    ]
    assert run.motions("r1") == ["1.331 go(2)", "3.331 go(3)", "6.331 say(hi)"]
    (_, _, segment) = run.sent[0]
    assert [call.name for call in segment.calls] == ["go", "go", "say"]


def test_vllm_stream_sends_segments_as_they_appear_and_never_suspends():
    run = sim("r1", "r2", policy="vllm_stream", max_batch=1)
    p = run.goal("r1", "a", at=1.0)
    q = run.goal("r2", "b", at=1.02, urgency=Urgency.URGENT)
    run.finish()
    assert run.story(p, q)[:7] == [
        "1.000 p1 ACCEPTED",
        "1.000 p1 STARTED",
        "1.020 p2 ACCEPTED",
        "1.063 p1 SEGMENT 0 'go(2)'",
        "1.163 p1 SEGMENT 1 ';go(3)'",
        "1.323 p1 SEGMENT 2 \";say('hi')\"!",
        "1.323 p2 STARTED",
    ]
    assert run.story(p, q, kinds="SUSPENDED RESUMED") == []


# What a policy says is done.


def test_the_loop_sleeps_until_the_policy_wants_to_choose_again():
    def choose(now, views, state) -> Decision:
        if now < 2.0:
            return Decision(wake_at=2.0)
        return Decision(run=tuple(view.id for view in views))

    run = choosing(choose)
    plan = run.goal("r1", "b", at=1.0)
    run.finish()
    assert run.story(plan)[1] == "2.000 STARTED"


def test_a_policy_sees_due_times_and_horizons():
    seen = []

    def choose(now, views, state) -> Decision:
        seen.extend((round(now, 3), view) for view in views)
        return Decision(run=tuple(view.id for view in views))

    run = choosing(choose)
    run.goal("r1", "a", at=1.0)
    run.finish()
    first, second = seen[0][1], next(view for _, view in seen if view.segment == 1)
    assert (first.arrival, first.origin, first.due) == (1.0, 1.0, 2.0)
    assert (first.utility.ert, first.running, first.mid_segment) == (1.0, False, False)
    assert (first.uncached, first.kv_tokens, first.tokens_left) == (3, 0, 4.1)
    assert second.due == second.origin == pytest.approx(1.063 + NETWORK + 2.0)
    assert (second.utility.ert, second.running, second.mid_segment) == (0.0, True, False)
    assert second.kv_tokens == 7  # beyond the shared block: three, and the four of the answer
    inside = next(view for at, view in seen if at == 1.003)
    assert (inside.mid_segment, inside.worst_tokens_left) == (True, 9.0)
    # The robot's RECEIVED, underway for 8 ms, corrects the horizon by as much.
    assert max(view.due for _, view in seen if view.segment == 1) == pytest.approx(3.079)


def test_segment_lengths_are_learned_from_segments_that_took_tokens():
    """One token ends two segments here; the second one tells nothing about lengths."""
    run = sim(plans={"x": ["go(1);go(1)", ";", "go(1)"]})
    run.goal("r1", "x", at=1.0)
    run.finish()
    assert [e.tokens for e in run.events if e.type.name == "SEGMENT"] == [1, 0, 2, 1]
    mean = 4.1
    for tokens in (1, 2, 1):
        mean += 0.1 * (tokens - mean)
    assert run.planner.state.fleet.find("r1").lengths.mean == pytest.approx(mean)


def test_step_times_are_learned():
    slow = 2.0 * STEP(1)
    run = sim(latency=type(STEP)((slow,), per_prefill_token=0.001), prior=STEP)
    run.goal("r1", "long", at=1.0)
    run.finish()
    assert run.planner.latency(1) == pytest.approx(slow, rel=0.01)
    assert run.robots["r1"].robot_id in run.planner.state.fleet.robots


def test_counts_are_those_of_the_moment():
    run = sim("r1", "r2", "r3", max_batch=1)
    run.goal("r1", "a", at=1.0)
    run.goal("r2", "long", at=1.0)
    run.goal("r2", "b", at=1.0)
    run.goal("r3", "b", at=1.0)
    run.run(1.07)
    counts = run.planner.counts()
    assert (counts.robots, counts.waiting, counts.running, counts.suspended) == (3, 2, 1, 1)
    run.finish()
    counts = run.planner.counts()
    assert (counts.waiting, counts.running, counts.suspended, counts.executing) == (0, 0, 0, 0)
    assert counts.kv_blocks_used == 2  # the fixed prompt's
    assert all(is_text(s) and s.command is SegmentCommand.RUN for _, _, s in run.sent)
