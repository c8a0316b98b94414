"""The page's own script, in Node with a stand-in for the browser: what it shows of each event of
the stream. Skipped where there is no Node; ``test_server_page.py`` has the page in a browser."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from fleets import P1, busy, ended, reports

from timely_llm.live.server import Page
from timely_llm.live.view import view
from timely_llm.protocols.messages import ExecutionState, PlanResult
from timely_llm.validation.outgoing import json_text

BROWSER = Path(__file__).parents[1] / "support" / "page_dom.js"
GOOD = ["message", json_text(view(busy(), 10.0))]


@pytest.fixture
def shown(tmp_path: Path):
    """What the page says after each of these events."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node is on the PATH")
    script = tmp_path / "page.js"
    script.write_text(re.search(rb"<script>(.*)</script>", Page.bundled().body, re.S)[1].decode())

    def show(*events: list[str]) -> list[dict[str, Any]]:
        lines = "".join(json.dumps(event) + "\n" for event in events)
        done = subprocess.run(
            [node, BROWSER, script], input=lines, capture_output=True, text=True, timeout=60
        )
        assert (done.returncode, done.stderr) == (0, "")
        return [json.loads(line) for line in done.stdout.splitlines()]

    return show


def test_a_picture_that_cannot_be_shown_is_seen_until_one_can(shown) -> None:
    broken, unknown = ["message", '{"planner": Infinity}'], ["message", '{"planner": {}}']
    first, *wrong, good = shown(GOOD, broken, ["quiet", ""], unknown, ["quiet", ""], GOOD)
    assert (first["stale"], first["banner"], first["link"]) == (False, "", "live")
    for said in wrong:
        assert said["stale"]
        assert said["link"] == "lost"
        assert said["banner"].startswith("This page cannot show what the planner sends (")
        assert "What is shown is of" in said["banner"]
    assert (good["stale"], good["banner"], good["link"]) == (False, "", "live")


def test_a_page_that_fails_at_the_planner_is_stale(shown) -> None:
    _, failed, quiet, lost, back = shown(
        GOOD, ["failed", ""], ["quiet", ""], ["error", ""], ["quiet", ""]
    )
    words = "The planner's page has failed: see its log."
    assert [said["banner"].startswith(words) for said in (failed, quiet, lost, back)] == [
        True, True, False, True,
    ]  # fmt: skip
    assert lost["banner"].startswith("No connection to the planner.")
    assert lost["stale"]


def test_what_is_not_known_is_a_question_mark(shown) -> None:
    fleet = busy()
    reports(fleet, P1, "drone_1", ExecutionState.RUNNING, 10.0, total_remaining=float("inf"))
    result = PlanResult(P1, waiting_time=float("nan"), utility=1e308)
    one = view(fleet, 10.0)
    ended(fleet, result, "drone_1", 10.0)
    other = view(fleet, 11.0)
    before, after = shown(["message", json_text(one)], ["message", json_text(other)])
    assert not before["stale"] and not after["stale"]
    assert "busy for ?" in before["text"]
    assert "utility ? response – waiting ?" in after["text"]
