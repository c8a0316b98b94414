"""The page of a recording: whole in itself, the same each time, safe, and right about the worst."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from bag_cases import of
from fleet_sim import FleetSim

from timely_llm.protocols.messages import ErrorCode, WhenBusy
from timely_llm.recording.report import page


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
