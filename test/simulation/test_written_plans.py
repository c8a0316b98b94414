"""Robots that read a plan as it comes do what those do that know it beforehand."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from segment_reference import segments

from timely_llm.estimation import presets as engine_presets
from timely_llm.language.parser import PlanError
from timely_llm.protocols.messages import ExecutionState, Segment, SegmentCommand
from timely_llm.protocols.utility import TimeUtility, Urgency
from timely_llm.simulation.known_plans import read
from timely_llm.simulation.loop import Setting, kinds_of, simulate, simulated
from timely_llm.simulation.robots import SimRobot
from timely_llm.simulation.trace import Arrival, Task
from timely_llm.simulation.workloads import published as workloads
from timely_llm.simulation.workloads.tasks import published, skill_sets
from timely_llm.simulation.written_plans import WrittenPlan, WrittenRobots, filled

TELLO = skill_sets()["tello"]


def task_of(plan, kind="tello"):
    utility = TimeUtility(1.0, -2.0, 1.0)
    return Task("made", kind, "do it", (plan,), utility, Urgency.NORMAL)


def pieces(task):
    """The segments of a task's plan, as the planner would send them."""
    cuts = [cut for token in read(task, skill_sets()[task.kind]).cuts for cut in token]
    return [
        Segment(1, "p", i, SegmentCommand.RUN, cut.text, cut.calls, cut.last)
        for i, cut in enumerate(cuts)
    ]


def grown(task, arrival=None):
    plan = WrittenPlan(
        skill_sets()[task.kind], arrival or Arrival(0.0, "r", task), random.Random(0)
    )
    for segment in pieces(task):
        plan.grow(segment)
    return plan


PLANS = [
    *(task.plan for task in published() if task.kind == "tello"),
    "3{mf(50);?iv('cat')==True{g('cat');->True}};->False",
    "?s('cat')==True|s('dog')==True{g('cat')};mu(40);",
    "mf(50);rp();mf(60);",
    "tp();",
]


@pytest.mark.parametrize("plan", PLANS)
def test_what_is_read_bit_by_bit_is_what_is_known_beforehand(plan):
    task = task_of(plan)
    known, found = read(task, TELLO), grown(task)
    assert tuple(found.actions) == known.actions
    assert found.ends == known.ends
    assert len(found.durations) == known.calls


def test_the_end_is_open_until_it_is_written():
    task = task_of("mf(50);mu(40);md(40);")
    plan = WrittenPlan(TELLO, Arrival(0.0, "r", task), random.Random(0))
    ends = []
    for segment in pieces(task):
        plan.grow(segment)
        ends.append(plan.ends)
    assert len(segments(task.plan, TELLO)) == len(ends) == 4
    assert ends == [float("inf")] * 3 + [3]


def test_a_call_takes_the_trace_s_time_where_it_is_the_same_call():
    trace_task, written = task_of("mf(50);mu(40);"), task_of("mf(50);mu(60);tp();")
    arrival = Arrival(0.0, "r", trace_task, (7.0, 8.0))
    plan = grown(written, arrival)
    assert plan.durations[0] == 7.0
    assert plan.durations[1] == TELLO["mu"].expected_duration((60,))  # not the trace's mu(40)
    assert plan.durations[2] == TELLO["tp"].expected_duration()


def test_an_unsound_text_is_refused():
    plan = WrittenPlan(TELLO, Arrival(0.0, "r", task_of("tp();")), random.Random(0))
    with pytest.raises(PlanError):
        plan.grow(Segment(1, "p", 0, SegmentCommand.RUN, "mf(50;", (), True))


def test_a_robot_that_is_halted_says_so_once():
    task = task_of("mf(50);mu(40);")
    robot = SimRobot("r", 1)
    plan = WrittenPlan(TELLO, Arrival(0.0, "r", task), random.Random(0))
    robot.take("p", plan, plan.durations)
    robot.receive(pieces(task)[0], 1.0)
    (report,) = robot.halt(1.5)
    assert (report.state, report.plan_id) == (ExecutionState.ABORTED, "p")
    assert robot.wake == float("inf")
    assert robot.halt(1.6) == []


@pytest.mark.parametrize(
    ("texts", "tokens"),
    [
        (["mf", "(50)", ";", ""], ("mf", "(50", ")", ";")),
        (["mf", "", "(50);"], ("m", "f", "(50);")),
        (["tp();", "", ""], ("tp(", ")", ";")),
        (["a", "", ""], ("a",)),
        (["", "ab"], ("ab",)),
    ],
)
def test_no_token_of_a_recorded_answer_is_empty(texts, tokens):
    assert filled(texts) == tokens


@given(st.lists(st.text("abc", max_size=3), max_size=12))
def test_recorded_tokens_keep_text_and_number(texts):
    found = filled(texts)
    assert "".join(found) == "".join(texts)
    assert all(found)
    assert len(found) <= min(len(texts), len("".join(texts)))
    long = ["x" * (len(texts) + 1), *texts]
    assert len(filled(long)) == len(long)


@pytest.mark.parametrize("policy", ["timely", "vllm", "vllm_stream"])
def test_a_whole_replay_is_the_same_with_either_kind_of_robot(policy):
    trace = workloads.make("wid1", seed=1, load=4.0)
    setting = Setting(policy, engine_presets.get("rtx4090-llama3-8b"))
    known, replay = simulate(trace, setting), simulated(trace, setting)
    kinds = kinds_of(trace.arrivals, setting)
    replay._model = WrittenRobots(trace.arrivals, kinds, seed=0)
    following = replay.run()
    assert following.outcomes == known.outcomes
    assert sum(outcome.completed_at is not None for outcome in known.outcomes) > 100
