"""Text of models, users and files is printed as it is, whatever it looks like to rich."""

import io
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from rich.console import Console
from rich.progress import Progress
from typer.testing import CliRunner

from timely_llm.bench import runner as bench_runs
from timely_llm.cli import demo_run, main, plan, replay
from timely_llm.cli.app import app
from timely_llm.cli.console import plain_console
from timely_llm.cli.demo_display import LineDisplay
from timely_llm.cli.tables import live_table, robots_table
from timely_llm.live.fleet_state import FleetState
from timely_llm.live.terminal_text import detail_text
from timely_llm.live.view import detail
from timely_llm.protocols.messages import (
    ErrorCode,
    Execution,
    ExecutionState,
    FeedbackState,
    PlanEvent,
    PlanEventType,
    PlanFeedback,
    PlanGoal,
    PlanResult,
    RobotInfo,
    SkillCall,
)
from timely_llm.recording.bag import BagWriter

ODD = ["l('[cat]')", "l('[/b]')", "l(':cat:')"]


def printed(*shown) -> str:
    console = Console(file=io.StringIO(), width=160)
    console.print(*shown)
    return console.file.getvalue()


ESCAPE = "\x1b[2J\x1b]0;x\x07"


def show_plan() -> None:
    plan._print_feedback(PlanFeedback("p", FeedbackState.EXECUTING, text=ESCAPE))
    plan._print_result(PlanResult("p", value=ESCAPE, plan=ESCAPE))
    plan._print_result(PlanResult("p", ErrorCode.SKILL_FAILED, ESCAPE))


def show_robots() -> None:
    Console().print(robots_table([RobotInfo(ESCAPE, ESCAPE, ESCAPE, 1, "")]))


def show_demo() -> None:
    display = LineDisplay(Console(), ESCAPE)
    result = PlanResult("p", ErrorCode.SKILL_FAILED, ESCAPE)
    display.event(PlanEvent("p", "d1", PlanEventType.ENDED, result=result), 0.0)
    display.event(PlanEvent("p", "d1", PlanEventType.SEGMENT, text=ESCAPE), 0.0)
    demo_run._show(SimpleNamespace(json_file=None), [], [f"edf: {ESCAPE}"], Console())


def show_fleet() -> None:
    fleet = FleetState()
    fleet.follow_event(PlanEvent("p", "d1", PlanEventType.SEGMENT, text=ESCAPE), 0.0)
    fleet.follow_execution("d1", Execution(1, 1, "p", STARTED, call=SkillCall(ESCAPE)), 0.0)
    Console().print(
        live_table(fleet, ("d1",), 1.0, "title", 160), detail_text(detail(fleet, "p", 0))
    )


def show_error() -> None:
    main()


STARTED = ExecutionState.STARTED


@pytest.mark.parametrize("show", [show_plan, show_robots, show_demo, show_fleet, show_error])
def test_no_words_from_outside_steer_the_terminal(show, capfd, monkeypatch):
    """Escape sequences are shown, not sent: of results, robots, events, errors."""
    monkeypatch.setattr("timely_llm.cli.app.app", Mock(side_effect=OSError(ESCAPE)))
    monkeypatch.setattr("signal.signal", Mock())
    show()
    shown = "".join(capfd.readouterr())
    assert "\\x1b[2J" in shown
    assert "\x1b[2J" not in shown and "\x07" not in shown


def test_what_a_bag_says_of_itself_steers_no_terminal(tmp_path):
    """A topic's name in the error that a bag without a planner gets."""
    with BagWriter(tmp_path / "bag") as writer:
        topic = writer.topic(f"/{ESCAPE}", "std_msgs/msg/String")
        writer.put(topic, 1, writer.types.types["std_msgs/msg/String"](ESCAPE))
    for command in ("report", "replay"):
        shown = CliRunner().invoke(app, [command, str(tmp_path / "bag")], color=False).output
        assert "\x1b[2J" not in shown and "\\x1b[2J" in shown


@pytest.mark.parametrize("call", ODD)
def test_the_live_table_shows_a_call_as_it_is(call):
    fleet = FleetState()
    fleet.sent("p", PlanGoal("d1", "say [/b]"), 0.0).call = call
    assert f": {call}" in printed(live_table(fleet, ("d1",), 1.0, "[/b]", 160))


def test_the_list_of_robots_shows_what_they_say_of_themselves():
    robot = SimpleNamespace(**{name: "" for name in RobotInfo.__dataclass_fields__})
    robot.robot_id, robot.kind, robot.robot_namespace = "d1", "[/b]", "[red]"
    shown = printed(robots_table([robot]))
    assert "[/b]" in shown and "[red]" in shown


@pytest.mark.parametrize("text", ODD)
def test_a_replay_s_notes_and_policies_are_shown_as_they_are(text, monkeypatch, capsys):
    number = {"mean": 1.0, "p99": 1.0}
    row = {"policy": "[/p]", "engine": "recorded", "max_batch": 8, "succeeded": 1, "n": 1}
    row |= {"utility_mean": 1.0, "utility_urgent_mean": None}
    change = {name: {"share": None} for name in ("utility_mean", "response_mean_s")}
    row |= {"response_s": number, "waiting_s": number}
    row["difference"] = change | {"waiting_mean_s": {"share": None}}
    report = {
        "recorded": {"pace": "", "duration_s": 1.0, "policy": "vllm"},
        "bag": "[/b]",
        "goals": 1,
        "results": [row],
        "measured": {"steps": 0},
        "notes": [text],
        "left_out": [{"robot_id": "d1", "instruction": "say [/b]", "why": "x"}],
    }
    replay._print(report)
    shown = capsys.readouterr().out
    for words in (f"note: {text}", "left out: d1: 'say [/b]': x", "[/p]"):
        assert words in shown


@pytest.mark.parametrize("text", ODD)
def test_a_demo_s_problems_are_shown_as_they_are(text):
    console = Console(file=io.StringIO(), width=160)
    options = SimpleNamespace(json_file=None)
    demo_run._show(options, [], [f"vllm: d1: {text} has no result"], console)
    assert console.file.getvalue() == f"problem: vllm: d1: {text} has no result\n"


@pytest.mark.parametrize("text", ODD)
def test_a_console_of_a_command_takes_any_text(text, capsys):
    plain_console(160).print(text)
    assert capsys.readouterr().out == f"{text}\n"


@pytest.mark.parametrize("text", ODD)
def test_the_name_of_a_workload_may_stand_next_to_the_progress_bar(text):
    with bench_runs._progress(Console(file=io.StringIO(), width=160)) as progress:
        assert isinstance(progress, Progress)
        progress.add_task(text)
        assert progress.columns[0].render(progress.tasks[0]).plain == text
