"""The life of a plan: every legal move, and no other."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timely_llm.core.request import MOST_DONE, MOVES, IllegalMove, Move, Request, State
from timely_llm.prompts.history import Done
from timely_llm.protocols.messages import ErrorCode, PlanGoal
from timely_llm.protocols.utility import TimeUtility

# Written by hand, not derived from the table: what a plan may do in each state.
LEGAL = {
    State.QUEUED: {Move.START: State.WAITING, Move.END: State.ENDED},
    State.WAITING: {Move.RUN: State.RUNNING, Move.STOP: State.STOPPING, Move.END: State.ENDED},
    State.RUNNING: {
        Move.SUSPEND: State.SUSPENDED,
        Move.EVICT: State.EVICTED,
        Move.FINISH: State.WRITTEN,
        Move.REPLAN: State.WAITING,
        Move.STOP: State.STOPPING,
        Move.END: State.ENDED,
    },
    State.SUSPENDED: {
        Move.RUN: State.RUNNING,
        Move.EVICT: State.EVICTED,
        Move.FINISH: State.WRITTEN,
        Move.REPLAN: State.WAITING,
        Move.STOP: State.STOPPING,
        Move.END: State.ENDED,
    },
    State.EVICTED: {
        Move.RUN: State.RUNNING,
        Move.FINISH: State.WRITTEN,
        Move.REPLAN: State.WAITING,
        Move.STOP: State.STOPPING,
        Move.END: State.ENDED,
    },
    State.WRITTEN: {
        Move.REPLAN: State.WAITING,
        Move.STOP: State.STOPPING,
        Move.END: State.ENDED,
    },
    State.STOPPING: {Move.END: State.ENDED},
    State.ENDED: {},
}


def make(state: State = State.QUEUED) -> Request:
    utility = TimeUtility(1.0, -2.0, 1.0)
    return Request("a" * 32, 1, PlanGoal("drone1", "fly"), utility, 10.0, state)


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("move", Move)
def test_every_pair_of_state_and_move(state, move):
    plan = make(state)
    target = LEGAL[state].get(move)
    if target is None:
        with pytest.raises(IllegalMove, match=f"{move.name} in state {state.name}"):
            plan.move(move)
        assert plan.state is state
    else:
        plan.move(move)
        assert plan.state is target


@given(st.lists(st.sampled_from(Move)))
def test_no_sequence_of_moves_leaves_the_end_or_skips_the_start(moves):
    plan = make()
    started = ended = False
    for move in moves:
        try:
            plan.move(move)
        except IllegalMove:
            continue
        assert not ended
        assert started or move in (Move.START, Move.END)
        started |= move is Move.START
        ended = move is Move.END
    assert plan.ended == ended


def test_a_state_is_in_the_engine_exactly_from_start_to_finish():
    inside = {State.WAITING, State.RUNNING, State.SUSPENDED, State.EVICTED}
    assert {state for state in State if make(state).in_engine} == inside
    assert {move for (state, move) in MOVES if state is State.ENDED} == set()


def test_the_result_counts_from_the_clock_s_start():
    plan = make(State.WRITTEN)
    plan.text = ["mf(100);", "g('cat')"]
    plan.sent("mf(100)", (), now=11.25, network=0.0)
    plan.sent(";g('cat')", (), now=11.5, network=0.0)
    plan.execution_time = 3.0
    plan.prompt_tokens, plan.tokens, plan.value = 30, 7, "True"
    result = plan.result(ErrorCode.NONE, "", now=15.0)
    assert result.plan == "mf(100);g('cat')"
    assert (result.num_segments, result.value) == (2, "True")
    assert (result.response_time, result.waiting_time, result.execution_time) == (1.25, 2.0, 3.0)
    assert result.utility == 0.5
    assert (result.prompt_tokens, result.generated_tokens) == (30, 7)


def test_without_a_response_the_utility_is_that_of_the_time_waited():
    result = make(State.WAITING).result(ErrorCode.CANCELED, "canceled", now=11.25)
    assert (result.response_time, result.waiting_time, result.utility) == (-1.0, 1.25, 0.5)


def test_waiting_is_never_negative():
    """A robot's clock may run faster than the planner's."""
    plan = make(State.WRITTEN)
    plan.execution_time = 9.0
    assert plan.result(ErrorCode.NONE, "", now=15.0).waiting_time == 0.0


def test_a_plan_remembers_the_last_of_its_calls():
    plan = make()
    for number in range(10_000):
        plan.remember(Done(f"go({number})", None))
    assert len(plan.history) == MOST_DONE
    assert plan.history[-1].call == "go(9999)"
