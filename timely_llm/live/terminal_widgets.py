"""The parts of the terminal view: a table that follows its rows, a question, one plan."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Protocol

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import DataTable, Label, Static

from timely_llm.live.terminal_text import detail_text

READABLE = 18  # characters that an elastic column should have at least
#: Columns that are left out where that is not to be had, the first ones first.
_SPARE = ("instruction", "urgency", "response", "since", "work left", "utility")


class Feed(Protocol):
    """Where the pictures come from. ``told`` may be called from any thread."""

    def view(self) -> dict[str, Any]: ...

    def detail(self, plan_id: str) -> dict[str, Any] | None: ...

    def stop_robots(self, robot_id: str, told: Callable[[str, bool], object]) -> None: ...


class Rows(DataTable):
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
                        self.update_cell_at((number, column), after)
        self._keys, self._cells = list(keys), list(cells)


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
