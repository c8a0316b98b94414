"""``timely-llm top`` on a board that the test feeds, driven by textual's own pilot: every key, what
is on the screen, and what is asked of the planner. Nothing waits for a clock."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from fleets import P1, P2, P3, P4, ROBOTS, accepted, busy, ended, reports
from hypothesis import given
from hypothesis import strategies as st
from textual.pilot import Pilot
from textual.widgets import Static

from timely_llm.live.fleet_state import FleetState
from timely_llm.live.terminal import Confirm, Detail, Rows, TopApp
from timely_llm.live.terminal_text import plan_text, segments_text
from timely_llm.live.view import detail, view
from timely_llm.protocols.messages import ErrorCode, ExecutionState, PlanResult, SkillCall

INF = float("inf")


class BoardFeed:
    """A board at a time of the test's own; keeps what it is asked to stop."""

    def __init__(self, board: FleetState, now: float = 10.0) -> None:
        self.board, self.now = board, now
        self.stops: list[str] = []
        self.answer = ("stopped: drone_1", True)
        self.error: Exception | None = None

    def view(self) -> dict[str, Any]:
        if self.error is not None:
            raise self.error
        return view(self.board, self.now)

    def detail(self, plan_id: str) -> dict[str, Any] | None:
        return detail(self.board, plan_id, self.now)

    def stop_robots(self, robot_id: str, answer: Callable[[str, bool], object]) -> None:
        self.stops.append(robot_id)
        answer(*self.answer)


Act = Callable[[TopApp, Pilot, BoardFeed], Awaitable[None]]


def drive(act: Act, board: FleetState | None = None, size: tuple[int, int] = (160, 40)) -> TopApp:
    """Run the app on a board, do something with it, and quit."""
    feed = BoardFeed(busy() if board is None else board)
    app = TopApp(feed, "fleet_a", period=None)

    async def run() -> None:
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            await act(app, pilot, feed)

    asyncio.run(run())
    return app


def rows(app: TopApp, name: str) -> list[list[str]]:
    """The rows of a table as a person reads them."""
    table = app.screen_stack[0].query_one(f"#{name}", Rows)
    return [[cell.plain.strip() for cell in table.get_row_at(n)] for n in range(table.row_count)]


def text(app: TopApp, selector: str) -> str:
    return str(app.screen.query_one(selector, Static).render())


def test_what_is_not_known_and_what_steers_a_terminal_is_shown_as_that() -> None:
    """An infinite rest of work, a utility that cannot be, escape sequences of a robot."""
    escape, board = "\x1b[2J", busy()
    call = SkillCall(escape)
    running = ExecutionState.RUNNING
    reports(board, P1, "drone_1", running, 10.0, segment=1, call=call, total_remaining=INF)
    failed = ErrorCode.SKILL_FAILED
    ended(board, PlanResult(P4, failed, escape, waiting_time=INF, utility=1e308), "drone_1", 10.0)

    async def act(app: TopApp, pilot: Pilot, feed: BoardFeed) -> None:
        assert rows(app, "robots")[0][-1] == "?"
        assert rows(app, "results")[0][3:6] == ["?", "-", "?"]
        assert rows(app, "results")[0][-1] == "\\x1b[2J"
        await pilot.press("enter")
        assert "\\x1b[2J()" in text(app, "#detail")
        feed.answer = (escape, False)
        await pilot.press("escape", "a", "a")
        await pilot.pause()
        said = [note.message for note in app._notifications]
        assert said == ["\\x1b[2J"]

    drive(act, board)


def test_the_fleet_is_on_the_screen() -> None:
    async def act(app: TopApp, pilot: Pilot, feed: BoardFeed) -> None:
        assert rows(app, "robots") == [
            ["drone_1", "alive", "critical", "writing +1", "Find the <b>cat</b>",
             "tc(90);?s('cat')==True{g('cat')}",
             "2.00 s", "3.0 s"],
            ["drone_2", "stopped", "urgent", "skill failed", "Fly to the moon", "mf(9)", "0.70 s",
             "none"],
            ["arm_1", "silent", "normal", "done", "Is there a cup?", "?iv('cup')==True{->True}",
             "0.25 s", "none"],
        ]  # fmt: skip
        assert rows(app, "queue") == [["drone_1", "low", "queued", "Land", "0.50 s"]]
        assert rows(app, "results") == [
            ["arm_1", "normal", "done", "1.00", "0.25 s", "0.25 s", "Is there a cup?",
             "returned True"],
            ["drone_2", "urgent", "skill failed", "-0.25", "0.50 s", "0.70 s", "Fly to the moon",
             "mf(9): out of range"],
        ]  # fmt: skip
        assert "in /fleet_a   policy least_loss · tiny_planner · simulated 1" in text(
            app, "#planner"
        )
        engine = text(app, "#engine")
        assert "writing 1   waiting 1" in engine and "step 21.5 ms" in engine
        assert "tokens/s 3.0" in engine and "3.0 %" in engine
        assert "1 of 2 done, utility 0.75" in text(app, "#results-title")

    drive(act, size=(164, 40))


def test_an_empty_fleet_says_so() -> None:
    async def act(app: TopApp, pilot: Pilot, feed: BoardFeed) -> None:
        assert "no planner heard yet" in text(app, "#planner")
        assert text(app, "#robots-title") == "No robot is registered"
        await pilot.press("enter", "s", "tab", "enter")
        assert len(app.screen_stack) == 1

    drive(act, FleetState())


def test_the_screen_follows_the_board() -> None:
    async def act(app: TopApp, pilot: Pilot, feed: BoardFeed) -> None:
        reports(feed.board, P1, "drone_1", ExecutionState.SUCCEEDED, 10.0, segment=1)
        feed.now = 10.5
        app.follow()
        assert rows(app, "robots")[0][6] == "2.50 s"
        ended(feed.board, PlanResult(P1, utility=3.0, response_time=1.0), "drone_1", 11.0)
        feed.now = 15.0
        app.follow()
        assert [row[0] for row in rows(app, "results")] == ["drone_1", "arm_1", "drone_2"]
        assert "the planner is silent for 5 s" in text(app, "#planner")
        feed.board.follow_robots(())
        app.follow()
        assert rows(app, "robots") == []

    drive(act)


def test_the_cursor_stays_with_its_row() -> None:
    async def act(app: TopApp, pilot: Pilot, feed: BoardFeed) -> None:
        await pilot.press("down")
        feed.board.follow_robots((replace(ROBOTS[0], robot_id="drone_0"), *ROBOTS))
        app.follow()
        table = app.query_one("#robots", Rows)
        assert table.robot_ids[table.cursor_row] == "drone_2"

    drive(act)


def test_enter_shows_a_plan_and_it_is_followed() -> None:
    async def act(app: TopApp, pilot: Pilot, feed: BoardFeed) -> None:
        await pilot.press("enter")
        assert isinstance(app.screen, Detail)
        shown = text(app, "#detail")
        assert P1 in shown and "Find the <b>cat</b>" in shown and "s(cat)" in shown
        ended(feed.board, PlanResult(P1, value="[7]"), "drone_1", 10.0)
        app.follow()
        assert "returned       [7]" in text(app, "#detail")
        await pilot.press("escape")
        assert not isinstance(app.screen, Detail)

    drive(act)


def test_goals_and_results_have_details_too() -> None:
    async def act(app: TopApp, pilot: Pilot, feed: BoardFeed) -> None:
        for plan_id in (P4, P3):
            await pilot.press("tab", "enter")
            assert plan_id in text(app, "#detail")
            await pilot.press("escape")

    drive(act)


def test_the_error_of_a_plan_is_in_its_details() -> None:
    async def act(app: TopApp, pilot: Pilot, feed: BoardFeed) -> None:
        await pilot.press("down", "enter")
        assert "SKILL_FAILED: mf(9): out of range" in text(app, "#detail")
        assert P2 in text(app, "#detail")

    drive(act)


ANSWERS = (
    (("s", "s"), ["drone_1"]),
    (("s", "y"), ["drone_1"]),
    (("down", "s", "enter"), ["drone_2"]),
    (("tab", "tab", "s", "s"), ["arm_1"]),
    (("a", "a"), [""]),
    (("s", "n"), []),
    (("a", "q"), []),
    (("enter", "s", "a"), []),
)
OPEN = (("s", "a", "tab"), ("a", "s", "down"))


def test_robots_are_stopped_only_when_it_is_confirmed() -> None:
    async def act(app: TopApp, pilot: Pilot, feed: BoardFeed) -> None:
        table = app.query_one("#robots", Rows)
        for keys, stops in (*ANSWERS, *((keys, []) for keys in OPEN)):
            table.focus()
            table.move_cursor(row=0)
            await pilot.press(*keys)
            await pilot.pause()
            assert (keys, feed.stops) == (keys, stops)
            assert isinstance(app.screen, Confirm) is (keys in OPEN)
            if len(app.screen_stack) > 1:
                await pilot.press("escape")
            feed.stops.clear()

    drive(act, size=(80, 20))


def test_the_planners_answer_to_a_stop_is_shown() -> None:
    async def act(app: TopApp, pilot: Pilot, feed: BoardFeed) -> None:
        feed.answer = ("UNKNOWN_ROBOT: [drone_1] has gone", False)
        await pilot.press("s", "s")
        feed.answer = ("stopped: drone_1", True)
        await pilot.press("s", "s")
        await pilot.pause()
        assert [(note.message, note.severity) for note in app._notifications] == [
            ("UNKNOWN_ROBOT: [drone_1] has gone", "error"),
            ("stopped: drone_1", "information"),
        ]

    drive(act)


@pytest.mark.parametrize("keys", [("q",), ("s", "ctrl+c")])
def test_quitting(keys: tuple[str, ...]) -> None:
    async def act(app: TopApp, pilot: Pilot, feed: BoardFeed) -> None:
        assert app.is_running
        await pilot.press(*keys)
        await pilot.pause()
        assert app._exit

    assert drive(act).failure is None


def test_the_end_of_the_feed_ends_the_app() -> None:
    error = RuntimeError("the ROS domain is gone")

    async def act(app: TopApp, pilot: Pilot, feed: BoardFeed) -> None:
        feed.error = error
        app.follow()
        await pilot.pause()
        assert app._exit

    assert drive(act).failure is error


@pytest.mark.parametrize(
    ("size", "columns"),
    [
        ((40, 12), "robot state plan plan-so-far waiting"),
        ((80, 24), "robot state plan plan-so-far waiting work-left"),
        ((110, 24), "robot state urgency plan plan-so-far waiting work-left"),
        ((300, 90), "robot state urgency plan instruction plan-so-far waiting work-left"),
    ],
)
def test_any_screen_will_do(size: tuple[int, int], columns: str) -> None:
    def names(app: TopApp) -> str:
        shown = app.query_one("#robots", Rows).columns.values()
        return " ".join(column.label.plain.replace(" ", "-") for column in shown)

    async def act(app: TopApp, pilot: Pilot, feed: BoardFeed) -> None:
        assert (names(app), len(rows(app, "robots"))) == (columns, 3)
        await pilot.resize_terminal(300, 30)
        app.follow()
        assert names(app).count("-") == 3 and len(rows(app, "results")) == 2

    drive(act, size=size)


def test_markup_of_a_goal_is_text() -> None:
    async def act(app: TopApp, pilot: Pilot, feed: BoardFeed) -> None:
        accepted(feed.board, "7" * 32, "arm_1", "[red]go[/] [@click=app.quit]x[/]", 10.0)
        app.follow()
        assert rows(app, "queue")[1][3] == "[red]go[/] [@click=app.quit]x[/]"
        await pilot.press("tab", "down", "enter")
        assert "[@click=app.quit]x[/]" in text(app, "#detail")

    drive(act)


STATES = st.sampled_from(("done", "running", "sent", "failed", "dropped"))
PLANS = st.fixed_dictionaries(
    {
        "skipped": st.integers(0, 1),
        "segments": st.lists(
            st.fixed_dictionaries({"text": st.text("ab;()", max_size=12), "state": STATES}),
            max_size=8,
        ),
    }
)


@given(PLANS, st.integers(12, 40))
def test_a_plan_fits_and_shows_what_runs(plan: dict[str, Any], width: int) -> None:
    shown = plan_text(plan, width).plain
    whole = segments_text(plan).plain
    assert len(shown) == min(width, len(whole))
    assert shown.strip("…") in whole
    running = [segment["text"] for segment in plan["segments"] if segment["state"] == "running"]
    if running and len(running[-1]) <= width - 2:
        assert running[-1] in shown
