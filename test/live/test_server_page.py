"""The page in a headless Chromium, on a board that the test feeds through the planner's own page.

Skipped where there is no Chromium.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from chromium import Chromium
from fleets import P1, P2, P4, busy, ended, reports

from timely_llm.live.address import Address
from timely_llm.live.fleet_state import FleetState
from timely_llm.live.server import Bounds, Page, Sources, WebServer
from timely_llm.live.view import detail, view
from timely_llm.protocols.messages import ErrorCode, ExecutionState, PlanResult


class Shown:
    """A board at a time of the test's own, served to a browser."""

    def __init__(self) -> None:
        self.board: FleetState = busy()
        self.now = 10.0
        sources = Sources(
            page=Page.bundled(),
            view=lambda: json.dumps(view(self.board, self.now)).encode(),
            plan=lambda plan_id: json.dumps(detail(self.board, plan_id, self.now)).encode(),
            metrics=lambda: b"",
        )
        bounds = Bounds(period=0.02, look=0.02)
        self.server = WebServer(Address("127.0.0.1", 0), sources, print, bounds)
        self.server.start()


@pytest.fixture
def shown(browser: Chromium) -> Iterator[Shown]:
    """The page of a busy fleet, open in the browser."""
    shown = Shown()
    browser.screen(1280, 900)
    browser.open(f"http://{shown.server.address}/")
    browser.until("document.querySelectorAll('.card').length === 3")
    yield shown
    browser.open("about:blank")
    shown.server.close()


def texts(browser: Chromium, selector: str) -> list[str]:
    """What elements show, as a person reads it."""
    script = f"[...document.querySelectorAll({json.dumps(selector)})].map(e => e.innerText)"
    return browser.evaluate(script)


def test_the_fleet_is_on_the_page(browser: Chromium, shown: Shown) -> None:
    assert texts(browser, "#who") == [
        "policy least_loss · tiny_planner · simulated 1 · paced to rtx4090-llama3-8b"
    ]
    assert texts(browser, ".card .top strong") == ["drone_1", "drone_2", "arm_1"]
    states = ["alive", "stopped", "silent"]
    assert texts(browser, ".card .top:first-child .pill") == states
    assert texts(browser, ".card:first-child .plan .running") == [";?s('cat')"]
    assert texts(browser, ".card:first-child .facts span") == [
        "busy for 3.0 s", "waiting 2.00 s", "", "1 more goal",
    ]  # fmt: skip
    assert texts(browser, "#queue li:not(.head) .text") == ["Land"]
    failed = texts(browser, "#results li:last-child")[0]
    assert "skill failed" in failed and "mf(9): out of range" in failed and "-0.25" in failed
    assert "Waiting" not in failed and "0.50 s" in failed
    assert texts(browser, "#link") == ["live"]


def test_what_changes_on_the_board_changes_on_the_page(browser: Chromium, shown: Shown) -> None:
    reports(shown.board, P1, "drone_1", ExecutionState.SUCCEEDED, 10.0, segment=1)
    shown.now = 12.0
    browser.until("document.querySelector('.card').classList.contains('waits')")
    ended(shown.board, PlanResult(P1, ErrorCode.CANCELED, "by its client"), "drone_1", 12.0)
    browser.until(
        "document.querySelector('#results li:not(.head) .text').innerText.includes('by its client')"
    )
    assert texts(browser, "#total")[0].startswith("1 of 3 done, utility 0.75")
    shown.board.follow_robots(())
    browser.until("document.querySelectorAll('.card').length === 0")
    assert texts(browser, "#no-robots") == ["No robot is registered."]


def test_a_robot_keeps_its_element(browser: Chromium, shown: Shown) -> None:
    """What a person marks or scrolls stays as it is while the fleet goes on."""
    browser.evaluate("void (window.first = document.querySelector('.card'))")
    reports(shown.board, P1, "drone_1", ExecutionState.SUCCEEDED, 10.0, segment=1)
    browser.until("document.querySelector('.card').classList.contains('waits')")
    assert browser.evaluate("window.first === document.querySelector('.card')") is True


def test_text_of_a_goal_is_text(browser: Chromium, shown: Shown) -> None:
    assert texts(browser, ".card:first-child .what") == ["Find the <b>cat</b>"]
    assert browser.evaluate("document.querySelectorAll('.card b, #results b').length") == 0


def test_the_page_runs_no_script_but_its_own(browser: Chromium, shown: Shown) -> None:
    script = "const s = document.createElement('script'); s.textContent = 'window.ran = 1';"
    browser.evaluate(f"{{ {script} document.body.append(s); }}")
    assert browser.evaluate("window.ran === undefined") is True
    breaches = [entry for entry in browser.console if "Content Security Policy" in entry]
    assert len(breaches) == 1
    browser.console.clear()


def test_the_detail_of_a_plan_opens_follows_and_closes(browser: Chromium, shown: Shown) -> None:
    browser.evaluate("document.querySelector('.card button').click()")
    browser.until("document.getElementById('detail').open")
    facts = texts(browser, "#detail dd")
    assert facts[:3] == ["Find the <b>cat</b>", "critical", P1]
    reports(shown.board, P1, "drone_1", ExecutionState.STARTED, 10.0, segment=2)
    shown.now = 11.0
    browser.until("document.querySelector('#detail .running')?.innerText === \"==True{g('cat')}\"")
    browser.evaluate("document.getElementById('close').click()")
    assert browser.evaluate("document.getElementById('detail').open") is False


def test_the_detail_of_a_result_has_its_error(browser: Chromium, shown: Shown) -> None:
    browser.evaluate("document.querySelector('#results li:last-child button').click()")
    browser.until("document.getElementById('detail').open")
    assert "SKILL_FAILED: mf(9): out of range" in texts(browser, "#detail dd")
    assert P2 in texts(browser, "#detail dd")


def test_a_planner_that_falls_silent_or_dies_is_seen(browser: Chromium, shown: Shown) -> None:
    shown.now = 15.8
    browser.until("document.getElementById('link').innerText === 'planner silent for 6 s'")
    shown.server.close()
    browser.until("!document.getElementById('lost').hidden")
    assert texts(browser, "#lost")[0].startswith("No connection to the planner. What is shown is")


@pytest.mark.parametrize("width", [320, 390, 700, 1280, 2560])
@pytest.mark.parametrize("dark", [False, True])
def test_it_fits_screens_of_any_width(
    browser: Chromium, shown: Shown, width: int, dark: bool
) -> None:
    """Nothing has to be scrolled sideways, and nothing can be read only in one of the looks."""
    browser.screen(width, 800, dark)
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    assert browser.evaluate(_LOW_CONTRAST) == []


# Elements with text of their own whose contrast to what is behind them is under 4.5 (WCAG AA).
_LOW_CONTRAST = """(() => {
  const channels = (c) => c.match(/[\\d.]+/g).map(Number);
  const light = (c) => { const [r, g, b] = channels(c).map((v) => { v /= 255;
    return v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; });
    return .2126 * r + .7152 * g + .0722 * b; };
  const ground = (e) => { for (; e; e = e.parentElement) {
    const c = getComputedStyle(e).backgroundColor; const [, , , a] = channels(c);
    if (a === undefined || a > 0) return c; } return "rgb(255, 255, 255)"; };
  const own = (e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
  return [...document.querySelectorAll("body *")].filter((e) => own(e) && e.offsetParent)
    .map((e) => [light(getComputedStyle(e).color), light(ground(e)), e])
    .filter(([a, b]) => (Math.max(a, b) + .05) / (Math.min(a, b) + .05) < 4.5)
    .map(([a, b, e]) => e.outerHTML);
})()"""


def test_it_can_be_used_without_a_mouse(browser: Chromium, shown: Shown) -> None:
    """The first Tab goes to the first robot's button, Enter opens its plan, Escape closes it."""
    for key, code in (("Tab", 9), ("Enter", 13)):
        press(browser, key, code)
    browser.until("document.getElementById('detail').open")
    press(browser, "Escape", 27)
    browser.until("!document.getElementById('detail').open")


def press(browser: Chromium, key: str, code: int) -> None:
    text = {"text": "\r"} if key == "Enter" else {}
    for kind in ("keyDown", "keyUp"):
        browser.call(
            "Input.dispatchKeyEvent", type=kind, key=key, code=key,
            windowsVirtualKeyCode=code, **(text if kind == "keyDown" else {}),
        )  # fmt: skip


def test_queued_goals_have_their_details_too(browser: Chromium, shown: Shown) -> None:
    browser.evaluate("document.querySelector('#queue li:last-child button').click()")
    browser.until("document.getElementById('detail').open")
    assert P4 in texts(browser, "#detail dd")
