"""The figures of a bench: what they show, by what they are made of."""

import json
from dataclasses import replace

import pytest

from timely_llm.bench import plots
from timely_llm.bench.burst import GoalTimeline, Span
from timely_llm.bench.config import GridPoint
from timely_llm.bench.plots import BOUND, COLOURS, page, timeline
from timely_llm.bench.results import Measured, Sample, summaries
from timely_llm.protocols.utility import Urgency


def measured(policy, load=1.0, utility=1.0, seed=0, batch=8, bound=None):
    samples = (Sample(Urgency.URGENT, 0.25, 0.3, utility), Sample(Urgency.LOW, None, 60.0, -9.0))
    times = {"mean": 2.0 * load, "p50": load, "p99": 5.0 * load}
    row = {"utility_mean": utility, "waiting_s": times, "response_s": times, "bound": bound}
    return Measured(GridPoint("engine", "wid2", load, policy, batch, seed), row, samples, 1.4)


def traces(figure):
    return json.loads(figure.to_json())["data"]


def words(figure):
    """All texts of a figure: titles, axes, names of lines."""
    layout = json.loads(figure.to_json())["layout"]
    axes = [v["title"]["text"] for k, v in layout.items() if "axis" in k and "title" in v]
    return {a["text"] for a in layout["annotations"]} | set(axes) | {layout["title"]["text"]}


def test_a_line_for_each_policy_with_its_name_and_the_bound():
    runs = [
        measured(policy, load, utility - load / 10, seed, bound=1.3)
        for load in (6.0, 1.0)
        for policy, utility in (("edf", 1.2), ("vllm", 0.7))
        for seed in (0, 1)
    ]
    figure = plots.figures(summaries(runs), runs)["utility"]
    lines = {trace["name"]: trace for trace in traces(figure)}
    assert set(lines) == {"edf", "vllm", BOUND}
    assert lines["edf"]["x"] == [1.0, 6.0]
    assert lines["edf"]["y"] == pytest.approx([1.1, 0.6])
    assert lines[BOUND]["y"] == [1.3, 1.3]
    assert {line["line"]["color"] for line in lines.values()} == {*COLOURS[:2], "#666666"}
    assert {"edf", "vllm", BOUND, "Utility against load", "engine · wid2"} <= words(figure)
    assert "mean time utility of a goal" in words(figure)


def test_names_of_lines_that_end_together_are_moved_apart():
    runs = [measured(p, load, 1.0 - load / 10) for load in (1.0, 3.0) for p in ("a", "b", "c")]
    figure = plots.figures(summaries(runs), runs)["utility"]
    places = [a.y for a in figure.layout.annotations if a.text in "abc"]
    assert len(set(places)) == 3


def test_waiting_has_its_unit_and_its_means():
    runs = [measured("edf", load) for load in (1.0, 2.0)]
    figure = plots.figures(summaries(runs), runs)["waiting"]
    assert traces(figure)[0]["y"] == [2.0, 4.0]
    assert "mean waiting time (s)" in words(figure)


def test_one_load_gives_points_on_rows_by_value():
    runs = [measured("edf", utility=1.2), measured("vllm", utility=0.7)]
    figure = plots.figures(summaries(runs), runs)["utility"]
    assert [(t["y"], t["x"]) for t in traces(figure)] == [(["vllm"], [0.7]), (["edf"], [1.2])]
    assert "mean time utility of a goal, load 1" in words(figure)


def test_a_goal_without_a_response_never_counts_as_served():
    runs = [measured("edf")]
    urgent, normal = traces(plots.figures(summaries(runs), runs)["response"])
    assert (urgent["x"], urgent["y"]) == ([0.25], [1.0])
    assert (normal["x"], normal["y"]) == ([], [])


def test_batch_sizes_have_a_figure_only_where_there_are_several():
    runs = [measured("edf", batch=b, utility=u) for b, u in ((2, 0.9), (8, 1.1), (4, 1.0))]
    made = plots.figures(summaries(runs), runs)
    (line,) = traces(made["batches"])
    assert (line["x"], line["y"]) == ([2, 4, 8], [0.9, 1.0, 1.1])
    assert "batches" not in plots.figures(summaries(runs[:1]), runs[:1])


def test_a_page_needs_nothing_else_and_is_the_same_each_time():
    runs = [measured("edf")]
    figure = plots.figures(summaries(runs), runs)["utility"]
    text = page(figure, "utility")
    assert text == page(figure, "utility")
    assert "<script src" not in text and "Utility against load" in text


def test_the_timeline_shows_every_policy_one_above_the_other():
    goal = GoalTimeline(
        7, "find_cat", True, 10.0, 10.2, 10.1, (Span(10.0, 10.09),), (Span(10.1, 12, "s"),)
    )
    figure = timeline({"vllm": (goal,), "edf": (replace(goal, first=None),)}, "One burst")
    bars = [trace for trace in traces(figure) if trace["type"] == "bar"]
    written = [bar for bar in bars if bar["name"] == "urgent plan is written"]
    assert [bar["base"] for bar in written] == [[0.0], [0.0]]
    assert written[0]["x"] == [pytest.approx(0.09)]
    assert written[0]["y"] == ["7 find_cat"]
    assert {"vllm", "edf", "One burst", "time since the burst (s)"} <= words(figure)
    firsts = [t["x"] for t in traces(figure) if t["name"] == "first segment at the robot"]
    assert firsts == [[pytest.approx(0.1)], []]
