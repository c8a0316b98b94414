"""ELIS's policy: windows by hand, and what the planner asks the predictor."""

import pytest
from fleet_sim import FleetSim
from hypothesis import given
from hypothesis import strategies as st
from policy_cases import STATES, state, view, views

from timely_llm.estimation.plan_length import WINDOW, Oracle, PastLengths, PredictorView
from timely_llm.policies import View
from timely_llm.policies.isrtf import choose, in_window
from timely_llm.protocols.messages import ErrorCode

LONG = ";".join(["go(0.1)"] * 20)  # 7 tokens for each, the end token being the last
SHORT = "go(0.1)"


def job(number: int, rest: float, written: int = 0, running: bool = False, **fields) -> View:
    known = {"kv_tokens": 60 if written or running else 0, "worst_tokens_left": 1.0}
    return view(number, predicted=rest, written=written, running=running, **(known | fields))


# The policy.


def test_the_shortest_predicted_rest_goes_first_then_the_number():
    some = [job(1, 90.0), job(2, 30.0), job(4, 60.0), job(3, 60.0)]
    assert choose(0.0, some, state(3)).run == ("p2", "p3", "p4")


def test_without_a_prediction_the_segment_s_rest_counts():
    some = [job(1, 30.0), view(2, tokens_left=20.0)]
    assert choose(0.0, some, state(1)).run == ("p2",)


@pytest.mark.parametrize(
    ("written", "stays"), [(0, True), (1, True), (49, True), (50, False), (51, True), (100, False)]
)
def test_a_window_of_50_tokens_is_run_to_its_end(written, stays):
    some = [job(1, 400.0, written, running=True), job(2, 3.0)]
    assert in_window(some[0]) is stays
    assert choose(0.0, some, state(1)).run == (("p1",) if stays else ("p2",))


def test_one_that_lost_its_blocks_in_a_window_ends_it_all_the_same():
    assert in_window(job(1, 400.0, 30, running=True, kv_tokens=0))
    assert not in_window(job(1, 400.0, 0, running=True, kv_tokens=0))


def test_one_that_does_not_run_has_no_window():
    assert not in_window(job(1, 400.0, 30))
    assert choose(0.0, [job(1, 400.0, 30), job(2, 3.0)], state(1)).run == ("p2",)


def test_where_one_ends_the_shortest_fills_its_place_at_once():
    some = [job(1, 400.0, 30, running=True), job(2, 90.0), job(3, 80.0)]
    assert choose(0.0, some, state(2)).run == ("p1", "p3")


def test_the_longest_gives_up_its_blocks_first():
    some = [job(1, 10.0), job(2, 50.0, 100), job(3, 90.0, 50), job(4, 70.0, 50)]
    decision = choose(0.0, some, state(1))
    assert (decision.run, decision.hold) == (("p1",), ("p3", "p4", "p2"))


def test_behind_one_that_lacks_memory_only_those_go_on_that_hold_blocks():
    some = [job(1, 10.0), job(2, 20.0, uncached=500), job(3, 30.0), job(4, 40.0, 50)]
    assert choose(0.0, some, state(4, free=300)).run == ("p1", "p4")
    assert choose(0.0, some, state(4, free=600)).run == ("p1", "p2", "p3", "p4")


@given(some=views(), engine=STATES, now=st.floats(0, 150))
def test_no_window_is_broken(some, engine, now):
    opened = [one.id for one in some if in_window(one)]
    free = engine._replace(kv_tokens_free=30_000)
    run = choose(now, some, free).run
    assert len(opened) > engine.max_batch or set(opened) <= set(run)


# What the planner asks.


class Recorder:
    """A stand-in that says 77 and writes down what it was asked."""

    def __init__(self) -> None:
        self.asked: list[PredictorView] = []
        self.whole: list[PredictorView] = []

    def remaining(self, sight: PredictorView) -> float:
        self.asked.append(sight)
        return 77.0

    def ended(self, sight: PredictorView) -> None:
        self.whole.append(sight)


def run(policy: str, predictor, goals: dict[str, float], **options) -> FleetSim:
    """Each goal for a robot of its own, at so many s."""
    sim = FleetSim({"write much": LONG, "write little": SHORT}, policy, **options)
    if sim.planner.predictor is not None:
        sim.planner.predictor = predictor
    for n, (instruction, at) in enumerate(goals.items()):
        sim.add_robot(f"r{n}")
        sim.goal(f"r{n}", instruction, at=at)
    return sim.finish()


def test_the_predictor_is_asked_at_the_start_and_every_50_tokens():
    recorder = Recorder()
    sim = run("isrtf", recorder, {"write much": 1.0})
    (plan_id,) = sim.results
    assert [one.tokens for one in recorder.asked] == [0, 50, 100]
    assert WINDOW == 50
    last = recorder.asked[-1]
    assert (last.plan_id, last.kind, last.instruction) == (plan_id, "walker", "write much")
    assert LONG.startswith(last.text)
    assert [(one.text, one.tokens) for one in recorder.whole] == [(LONG, 140)]


def test_a_policy_without_predictions_asks_nobody():
    sim = run("timely", None, {"write little": 1.0})
    assert sim.planner.predictor is None


def test_the_default_learns_from_the_plans_that_ended():
    sim = run("isrtf", PastLengths(), {"write little": 1.0, "write much": 2.0})
    fresh = PredictorView("f" * 32, 9, "walker", "write more", "", "", 0)
    assert sim.planner.predictor.remaining(fresh) == pytest.approx((7 + 140) / 2)


def test_a_short_plan_overtakes_a_long_one_at_the_end_of_its_window():
    """Batches of one. The long one begins at 1 s: 12 prompt tokens in 12 ms give the first token,
    49 more at 20 ms end its window at 1.992 s. Then the short one goes first, 12 + 2 prompt tokens
    and 6 more of its own."""
    oracle = Oracle(lambda s: 140 if "much" in s.instruction else 7)
    sim = run("isrtf", oracle, {"write much": 1.0, "write little": 1.2}, max_batch=1)
    long, short = sim.goals
    assert sim.story(short, kinds="STARTED SUSPENDED") == ["1.992 STARTED"]
    assert sim.story(long, kinds="STARTED SUSPENDED RESUMED") == [
        "1.000 STARTED",
        "1.992 SUSPENDED",
        "2.126 RESUMED",
    ]
    assert all(r.error_code is ErrorCode.NONE for r in sim.results.values())
    first = [e for e in sim.events if e.plan_id == long and e.type.name == "SEGMENT"]
    assert sum(e.tokens for e in first if e.stamp < 1.992) == 48  # and 2 of the eighth segment
