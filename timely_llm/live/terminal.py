"""The terminal view of ``timely-llm top``: tables that follow the fleet, a question, one plan. What
it shows comes from a feed of pictures (``live/view.py``), as text of ``live/terminal_text.py``."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Protocol

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.coordinate import Coordinate
from textual.screen import ModalScreen
from textual.widgets import DataTable, Footer, Label, Static

from timely_llm.live.terminal_text import (
    colour_of,
    detail_text,
    engine_text,
    fixed,
    plan_text,
    planner_text,
    seconds,
)
from timely_llm.validation.outgoing import visible

PERIOD = 0.25  # s between two pictures
#: Columns and their widths; 0: an equal share of what is left.
_ROBOTS = {
    "robot": 10, "state": 8, "urgency": 10, "plan": 13, "instruction": 0, "plan so far": 0,
    "waiting": 8, "work left": 9,
}  # fmt: skip
_QUEUE = {"robot": 10, "urgency": 10, "state": 10, "instruction": 0, "since": 8}
_RESULTS = {
    "robot": 10, "urgency": 10, "result": 16, "utility": 7, "response": 8, "waiting": 8,
    "instruction": 0, "in words": 0,
}  # fmt: skip
READABLE = 18  # characters that an elastic column should have at least
#: Columns that are left out where that is not to be had, the first ones first.
_SPARE = ("instruction", "urgency", "response", "since", "work left", "utility")


class Feed(Protocol):
    """Where the pictures come from."""

    def view(self) -> dict[str, Any]:
        """The picture of this moment."""
        ...

    def detail(self, plan_id: str) -> dict[str, Any] | None:
        """All of one plan, None where it is not known any more."""
        ...

    def stop_robots(self, robot_id: str, answer: Callable[[str, bool], object]) -> None:
        """Stop a robot, or all with an empty id. Returns at once; ``answer`` is called later, from
        any thread, with words and whether it was done."""
        ...


class Rows(DataTable[Text]):
    """A table whose rows are followed by key; ``plan_ids`` are those of the rows."""

    BINDINGS: ClassVar = [
        Binding("enter", "select_cursor", "Details"),
        Binding("tab", "app.focus_next", "Next table"),
    ]

    def __init__(self, columns: dict[str, int], **arguments: Any) -> None:
        super().__init__(
            cursor_type="row",
            cursor_foreground_priority="renderable",
            zebra_stripes=True,
            **arguments,
        )
        self._widths = columns
        self.plan_ids: list[str | None] = []
        self.robot_ids: list[str] = []
        self._keys: list[str] = []
        self._cells: list[tuple[Text, ...]] = []
        self._made_for = 0

    def fit(self, width: int) -> tuple[dict[str, int], int]:
        """The columns that are shown on a screen of ``width``, and how wide an elastic one is."""
        columns = dict(self._widths)
        for spare in ("", *_SPARE):
            if len([n for name, n in columns.items() if n == 0 and name != spare]) > 0:
                columns.pop(spare, None)
            elastic = sum(n == 0 for n in columns.values())
            share = (width - sum(columns.values()) - 2 * len(columns) - 2) // elastic
            if share >= READABLE:
                break
        return columns, max(READABLE, share)

    def follow(self, keys: Sequence[str], cells: Sequence[tuple[Text, ...]], width: int) -> None:
        """Show these rows; the cursor stays with the row it is at."""
        columns, share = self.fit(width)
        if width != self._made_for:
            self._made_for, self._keys = width, []
            self.clear(columns=True)
            for name, fixed in columns.items():
                self.add_column(name, width=fixed or share)
        shown = [name in columns for name in self._widths]
        cells = [tuple(itertools.compress(row, shown)) for row in cells]
        if list(keys) != self._keys:
            at = self._keys[self.cursor_row] if self.cursor_row < len(self._keys) else ""
            self.clear()
            for row in cells:
                self.add_row(*row)
            if at in keys:
                self.move_cursor(row=list(keys).index(at), animate=False)
        else:
            for number, (old, new) in enumerate(zip(self._cells, cells, strict=True)):
                for column, (before, after) in enumerate(zip(old, new, strict=True)):
                    if before != after or before.spans != after.spans:
                        self.update_cell_at(Coordinate(number, column), after)
        self._keys, self._cells = list(keys), list(cells)

    def follow_plans(
        self, plans: Sequence[dict[str, Any]], cells: Sequence[tuple[Text, ...]], width: int
    ) -> None:
        """Show one row for each plan; nothing where there is none."""
        keys = [plan["plan_id"] for plan in plans]
        self.plan_ids, self.robot_ids = [*keys], [plan["robot"] for plan in plans]
        self.follow(keys, cells, width)
        self.display = bool(plans)


class Confirm(ModalScreen[bool]):
    """A question; the key that asked it also answers it with yes."""

    def __init__(self, question: str, key: str) -> None:
        super().__init__()
        self._question, self._key = question, key

    def compose(self) -> ComposeResult:
        with VerticalScroll():
            yield Label(self._question, markup=False)
            yield Label(f"[b]{self._key}[/], y, Enter: stop     n, Escape: leave it")

    def on_key(self, event: Any) -> None:
        event.stop()
        if event.key in (self._key, "y", "enter"):
            self.dismiss(True)
        elif event.key in ("n", "escape", "q"):
            self.dismiss(False)


class Detail(ModalScreen[None]):
    """One plan, as long as it is known."""

    BINDINGS: ClassVar = [Binding("escape,enter,q", "dismiss", "Close")]

    def __init__(self, feed: Feed, plan_id: str) -> None:
        super().__init__()
        self._feed, self._plan_id = feed, plan_id

    def compose(self) -> ComposeResult:
        with VerticalScroll():
            yield Static(id="detail")
            yield Label("Escape: close")

    def on_mount(self) -> None:
        self.follow()

    def follow(self) -> None:
        """Show what is known now."""
        shown = self._feed.detail(self._plan_id)
        if shown is not None:
            self.query_one("#detail", Static).update(detail_text(shown))


class TopApp(App[None]):
    """``period`` s between two pictures; None: only when ``follow`` is called."""

    TITLE = "timely-llm top"
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    Screen { layout: vertical; }
    #planner, #engine { height: auto; padding: 0 1; }
    .title { height: 1; padding: 0 1; margin-top: 1; text-style: bold; color: $text-muted; }
    Rows { height: auto; max-height: 1fr; background: $background; }
    #robots { max-height: 60%; }
    Rows > .datatable--cursor { background: transparent; text-style: none; }
    Rows:focus > .datatable--cursor { background: $primary 35%; }
    Confirm, Detail { align: center middle; }
    Confirm VerticalScroll, Detail VerticalScroll {
      width: 76; max-width: 96%; height: auto; max-height: 90%;
      padding: 1 2; background: $surface; border: round $primary;
    }
    Confirm Label, Detail Label { width: 100%; margin-bottom: 1; }
    Detail Label { margin: 1 0 0 0; color: $text-muted; }
    """
    BINDINGS: ClassVar = [
        Binding("s", "stop_robot", "Stop robot"),
        Binding("a", "stop_all", "Stop all"),
        Binding("q", "quit", "Quit"),
        Binding("ctrl+c", "quit", show=False, priority=True),
    ]

    def __init__(self, feed: Feed, namespace: str = "", period: float | None = PERIOD) -> None:
        super().__init__()
        self._feed, self._namespace, self._period = feed, namespace.strip("/"), period
        self.failure: Exception | None = None

    def compose(self) -> ComposeResult:
        yield Static(id="planner")
        yield Static(id="engine")
        yield Label("Robots", classes="title", id="robots-title")
        yield Rows(_ROBOTS, id="robots")
        yield Label("Goals that wait", classes="title", id="queue-title")
        yield Rows(_QUEUE, id="queue")
        yield Label("Last results", classes="title", id="results-title")
        yield Rows(_RESULTS, id="results")
        yield Footer()

    def on_mount(self) -> None:
        self.follow()
        self.query_one("#robots").focus()
        if self._period is not None:
            self.set_interval(self._period, self.follow)

    def on_resize(self) -> None:
        self.follow()

    def follow(self) -> None:
        """Show the feed's newest picture."""
        try:
            view = self._feed.view()
        except Exception as error:  # what ended the feed
            self.failure = error
            self.exit()
            return
        screen = self.screen_stack[0]
        where = f" in /{self._namespace}" if self._namespace else ""
        screen.query_one("#planner", Static).update(planner_text(view["planner"], where))
        screen.query_one("#engine", Static).update(engine_text(view["engine"]))
        self._show_robots(view["robots"])
        self._show_goals(view["queue"], view["queue_length"])
        self._show_results(view["results"], view["totals"])
        if isinstance(self.screen, Detail):
            self.screen.follow()

    def _rows(self, name: str) -> Rows:
        return self.screen_stack[0].query_one(f"#{name}", Rows)

    def _title(self, name: str, text: str) -> None:
        self.screen_stack[0].query_one(f"#{name}-title", Label).update(Text(text))

    def _show_robots(self, robots: list[dict[str, Any]]) -> None:
        rows = self._rows("robots")
        _, share = rows.fit(self.size.width)
        rows.plan_ids = [robot["plan"] and robot["plan"]["plan_id"] for robot in robots]
        rows.robot_ids = [robot["id"] for robot in robots]
        cells = [_robot_cells(robot, share) for robot in robots]
        rows.follow(rows.robot_ids, cells, self.size.width)
        self._title("robots", f"Robots: {len(robots)}" if robots else "No robot is registered")

    def _show_goals(self, goals: list[dict[str, Any]], length: int) -> None:
        rows = self._rows("queue")
        cells = [
            (
                Text(goal["robot"]),
                _coloured(goal["urgency"]),
                Text(goal["state"]),
                Text(goal["instruction"]),
                _right(seconds(goal["age_s"]), 8),
            )
            for goal in goals
        ]
        rows.follow_plans(goals, cells, self.size.width)
        self._title("queue", f"Goals that wait: {length or 'none'}")

    def _show_results(self, results: list[dict[str, Any]], totals: dict[str, Any]) -> None:
        rows = self._rows("results")
        rows.follow_plans(results, [_result_cells(result) for result in results], self.size.width)
        text = "Last results: none yet"
        if totals["plans"]:
            text = (
                f"Last results: {totals['succeeded']} of {totals['plans']} done, utility "
                f"{fixed(totals['utility'], 2)}, mean response {seconds(totals['response_s'])}, "
                f"mean waiting {seconds(totals['waiting_s'])}"
            )
        self._title("results", text)

    # Keys.

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        rows = event.data_table
        if isinstance(rows, Rows) and event.cursor_row < len(rows.plan_ids):
            plan_id = rows.plan_ids[event.cursor_row]
            if plan_id is not None and self._feed.detail(plan_id) is not None:
                self.push_screen(Detail(self._feed, plan_id))

    def action_stop_robot(self) -> None:
        """Of the row with the cursor, in whatever table."""
        rows = self.focused if isinstance(self.focused, Rows) else self._rows("robots")
        if isinstance(self.screen, ModalScreen) or rows.cursor_row >= len(rows.robot_ids):
            return
        robot_id = rows.robot_ids[rows.cursor_row]
        question = (
            f"Stop {robot_id}? It halts, its plans end, and it stays stopped until it is rearmed "
            "at the robot."
        )
        self._ask_stop(robot_id, question, "s")

    def action_stop_all(self) -> None:
        if not isinstance(self.screen, ModalScreen):
            question = (
                "Stop ALL robots? They halt, their plans end, and they stay stopped until each is "
                "rearmed."
            )
            self._ask_stop("", question, "a")

    def _ask_stop(self, robot_id: str, question: str, key: str) -> None:
        def answered(yes: bool | None) -> None:
            if yes:
                self._feed.stop_robots(robot_id, self._answer)

        self.push_screen(Confirm(question, key), answered)

    def _answer(self, words: str, done: bool) -> None:
        """The answer to a stop; from any thread."""
        severity = "information" if done else "error"
        self.call_later(self.notify, visible(words), severity=severity, timeout=8, markup=False)


def _coloured(word: str) -> Text:
    return Text(word.replace("_", " "), style=colour_of(word))


def _right(text: str, width: int) -> Text:
    return Text(text.rjust(width))


def _robot_cells(robot: dict[str, Any], share: int) -> tuple[Text, ...]:
    plan = robot["plan"]
    head = (Text(robot["id"]), _coloured(robot["state"]))
    left = fixed(robot["horizon_s"], 1, " s") if robot["busy"] else "none"
    if plan is None:
        words = Text(robot["error"] or "no plan yet", style="dim")
        return (*head, Text(), Text(), words, Text(), Text(), _right(left, 9))
    state = _coloured(plan["state"])
    if robot["queued"]:
        state += Text(f" +{robot['queued']}")
    waiting = fixed(plan["waiting_s"], 2, " s").rjust(8)
    return (
        *head,
        _coloured(plan["urgency"]),
        state,
        Text(robot["error"] or plan["instruction"], overflow="ellipsis", no_wrap=True),
        plan_text(plan, share),
        Text(waiting, style="bold yellow" if plan["waits"] else ""),
        _right(left, 9),
    )


def _result_cells(result: dict[str, Any]) -> tuple[Text, ...]:
    words = result["words"] or (f"returned {result['value']}" if result["value"] else "")
    return (
        Text(result["robot"]),
        _coloured(result["urgency"]),
        _coloured("done" if result["ok"] else result["code"].lower()),
        _right(fixed(result["utility"], 2), 7),
        _right(seconds(result["response_s"]), 8),
        _right(fixed(result["waiting_s"], 2, " s"), 8),
        Text(result["instruction"], overflow="ellipsis", no_wrap=True),
        Text(words, overflow="ellipsis", no_wrap=True),
    )
