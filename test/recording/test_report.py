"""The page of a recording: whole in itself, the same each time, safe, and right about the worst."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import bag_cases
import pytest
from bag_cases import busy_fleet
from fleet_sim import FleetSim

from timely_llm.protocols.messages import ErrorCode, WhenBusy
from timely_llm.recording import bag
from timely_llm.recording import report_figures as figures
from timely_llm.recording.goals import goals_of
from timely_llm.recording.moments import worst_moments
from timely_llm.recording.report import page


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bags")
    path = bag_cases.record(busy_fleet("vllm"), folder / "busy", bag_cases.config("vllm"))
    recording = bag.read(path)
    return recording, goals_of(recording)


def of(sim: FleetSim, folder, policy="timely", **options):
    recording = bag.read(bag_cases.record(sim, folder / "bag", bag_cases.config(policy), **options))
    return recording, goals_of(recording)


class Seen(HTMLParser):
    """Texts outside scripts and styles; what the page would load; unclosed tags."""

    VOID = ("meta", "br", "link", "img", "input", "hr")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.loads: list[str] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.loads += [v for k, v in attributes if k in ("src", "href") and v]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("script", "style"):
            self.texts.append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.texts))


def test_the_page_needs_nothing_else_and_is_the_same_each_time(shown):
    text = page(*shown)
    seen = Seen(text)
    assert seen.open == [] and seen.loads == []
    assert "Plotly.newPlot" in text and len(text) > 1_000_000
    assert page(*shown) == text


def test_everybody_and_everything_is_named(shown):
    recording, goals = shown
    text = Seen(page(recording, goals)).text
    for robot in recording.robots:
        assert robot in text
    for goal in goals:
        assert goal.goal.instruction in text
        for call in goal.calls:
            assert call.text in text
    assert "policy vllm" in text and "at the engine's own speed" in text
    fine = sum(goal.code is ErrorCode.NONE for goal in goals)
    assert f"{fine} of {len(goals)}" in text
    for topic in recording.topics:
        assert topic.name in text


def test_what_others_wrote_is_shown_not_run(tmp_path):
    bad = "</script><script>alert('it ran')</script><img src=x onerror=alert(1)>"
    sim = FleetSim({bad: "go(2)"})
    sim.add_robot("r0", faults={"go(2)": f"blocked by {bad}"})
    sim.goal("r0", bad, 1.0)
    text = page(*of(sim.finish(), tmp_path))
    assert bad not in text and "<img" not in text
    assert text.count("<script") == text.count("</script>")
    assert bad in Seen(text).text


def test_the_timeline_has_each_state_at_its_time(shown):
    recording, goals = shown
    figure = figures.timeline(recording, goals)
    bars = {bar.name.strip(): bar for bar in figure.data if bar.type == "bar"}
    assert {"generating", "waiting", "suspended", "executing"} <= {n.split()[0] for n in bars}
    executing = sum(sum(bar.x) for bar in figure.data if bar.type == "bar" and "exec" in bar.name)
    assert executing == pytest.approx(
        sum(max(call.ended - call.begun, 0.001) for goal in goals for call in goal.calls)
    )
    waited = sum(bars["waiting"].x)
    assert waited == pytest.approx(
        sum(span.end - span.start for goal in goals for span in figures.waits(goal))
    )
    assert 0 < figures.busy_share(goals) < 1


def test_waiting_on_the_timeline_is_the_planner_s_waiting(shown):
    for goal in shown[1]:
        drawn = sum(span.end - span.start for span in figures.waits(goal))
        assert drawn == pytest.approx(goal.result.waiting_time, abs=0.02)


def test_failures_come_first_with_the_robot_s_words(shown):
    first, *others = worst_moments(shown[1])
    assert first.failed and first.robot_id == "r2"
    assert "SKILL_FAILED" in first.what and "blocked" in first.why
    assert not any(moment.failed for moment in others)
    losses = [moment.loss for moment in others]
    assert losses == sorted(losses, reverse=True)


def test_a_late_segment_says_who_had_the_engine(tmp_path):
    sim = FleetSim({"long": "go(2);" * 6, "walk": "go(2)"}, "fcfs", max_batch=1)
    for name in ("r0", "r1"):
        sim.add_robot(name)
    sim.goal("r0", "long", 1.0)
    sim.goal("r1", "walk", 1.05, urgency=2)
    _, goals = of(sim.finish(), tmp_path, "fcfs")
    moment = next(m for m in worst_moments(goals) if m.robot_id == "r1")
    assert moment.loss > 0 and "due within" in moment.what
    assert "until the engine began on it: the engine was writing for r0 (normal" in moment.why


def test_a_robot_that_stood_still_says_why(tmp_path):
    plans = {"slow": "go(0.1);say('a long text that takes its time');go(0.1)"}
    sim = FleetSim(plans, "vllm_stream")
    sim.add_robot("r0")
    sim.goal("r0", "slow", 1.0)
    _, goals = of(sim.finish(), tmp_path, "vllm_stream")
    still = [m for m in worst_moments(goals) if "stood still" in m.what]
    assert still and "Writing took" in still[0].why


def test_a_replaced_plan_and_a_queued_one_have_their_clocks(tmp_path):
    sim = FleetSim({"walk": "go(2)", "stop": "go(4)"})
    sim.add_robot("r0")
    sim.goal("r0", "stop", 1.0)
    sim.goal("r0", "walk", 2.0)
    sim.goal("r0", "walk", 2.1, when_busy=WhenBusy.REJECT)
    recording, goals = of(sim.finish(), tmp_path)
    text = Seen(page(recording, goals)).text
    assert goals[1].begun - goals[1].accepted == pytest.approx(3.1, abs=0.2)
    assert re.search(r"queued 3\.\d\d s", text) and "ROBOT_BUSY" in text


def test_a_recording_without_goals_says_so(tmp_path):
    sim = FleetSim({"walk": "go(2)"})
    sim.add_robot("r0")
    sim.goal("r0", "walk", 1.0)
    recording, goals = of(sim.finish(), tmp_path)
    seen = Seen(page(recording, []))
    assert "no goal was recorded" in seen.text and len(goals) == 1
    assert "1 plans began before" not in seen.text


def test_a_recording_of_the_end_alone_counts_the_strangers(tmp_path):
    sim = FleetSim({"walk": "go(2)"})
    sim.add_robot("r0")
    sim.goal("r0", "walk", 1.0)
    sim.finish()
    sim.events[:] = [event for event in sim.events if event.goal is None]
    recording, goals = of(sim, tmp_path, without=("robots", "planner_config", "execution"))
    text = Seen(page(recording, goals)).text
    assert "1 plans began before the recording and are left out" in text
    assert "/planner_config is not in the bag" in text
