"""What the planner asks a predictor of plan lengths, and when."""

import pytest
from fleet_sim import FleetSim

from timely_llm.estimation.plan_length import WINDOW, Oracle, PastLengths, PredictorView
from timely_llm.protocols.messages import ErrorCode

LONG = ";".join(["go(0.1)"] * 20)  # 7 tokens for each, the end token being the last


SHORT = "go(0.1)"


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
