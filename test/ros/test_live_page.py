"""The fleet's picture over real DDS: in ``timely-llm top``, and on the planner's web page.

The simulated engine stands in for a model; everything else is real.
"""

from __future__ import annotations

import http.client
import json
import logging
import os
import pty
import queue
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from nodes import LATCHED, LIMIT, ROOT, Client, Process
from prometheus_client.parser import text_string_to_metric_families
from std_srvs.srv import Trigger

from timely_llm.msg import PlannerStatus, RobotInfo, RobotList
from timely_llm.ros.declare import ParameterError
from timely_llm.ros.fleet_feed import FleetFeed
from timely_llm.ros.live_page import open_page

PLANS = Path(__file__).parents[2] / "test" / "data" / "plans.yaml"
SIMULATED = {"engine": "simulated", "model": PLANS, "max_tokens": 60}


@pytest.fixture(scope="module")
def planner(start_for_module) -> Process:
    """A planner with a page on a free port, and two drones."""
    planner = start_for_module("planner", **SIMULATED, web="127.0.0.1:0")
    for robot_id in ("d1", "d2"):
        start_for_module("robot", robot_id=robot_id, heartbeat_period=0.1)
    return planner


@pytest.fixture
def flying(planner: Process, client: Client) -> Client:
    client.wait_for_robots("d1", "d2")
    return client


@pytest.fixture
def feed(flying: Client) -> Iterator[FleetFeed]:
    feed = FleetFeed()
    feed.start()
    assert feed.wait_whole(LIMIT)
    yield feed
    feed.close()


class Site:
    """The planner's page, as a browser asks for it."""

    def __init__(self, planner: Process) -> None:
        found = re.search(r"the fleet is shown at http://(127\.0\.0\.1:\d+)/", planner.output())
        self.address = found[1]

    def get(self, path: str) -> bytes:
        connection = http.client.HTTPConnection(self.address, timeout=LIMIT)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            assert answer.status == 200, path
            return answer.read()
        finally:
            connection.close()

    def view(self) -> dict:
        return json.loads(self.get("/view.json"))


def plan_of(view: dict, robot_id: str) -> dict | None:
    return next((r["plan"] for r in view["robots"] if r["id"] == robot_id), None)


def running(view: dict, robot_id: str) -> list[str]:
    plan = plan_of(view, robot_id)
    return [s["text"] for s in plan["segments"] if s["state"] == "running"] if plan else []


def test_top_and_the_page_show_what_a_robot_does(flying, planner, feed) -> None:
    goal = flying.goal("d1", "stay", urgency=2)
    site = Site(planner)
    for look in (feed.view, site.view):
        view = flying.until(
            lambda look=look: running(v := look(), "d1") == [";d(60)"] and v, "a second segment"
        )
        assert [robot["id"] for robot in view["robots"]] == ["d1", "d2"]
        assert {robot["state"] for robot in view["robots"]} == {"alive"}
        plan = plan_of(view, "d1")
        assert (plan["instruction"], plan["urgency"]) == ("stay", "urgent")
        assert plan["segments"][0] == {"index": 0, "text": "d(0.2)", "state": "done"}
        assert view["robots"][0]["horizon_s"] > 0
    goal.cancel()
    goal.result()
    _, result = flying.goal("d1", "wait a little").result()
    plan_id = bytes(result.plan_id.uuid).hex()
    for look in (feed.view, site.view):
        view = flying.until(lambda look=look: len((v := look())["results"]) > 1 and v, "results")
        shown = view["results"][0]
        assert (shown["plan_id"], shown["ok"], shown["robot"]) == (plan_id, True, "d1")
        assert shown["response_s"] == round(result.response_time, 3)
        assert shown["utility"] == round(result.utility, 3)
        assert view["planner"]["policy"] == "least_loss"
        assert view["engine"]["kv_total"] > 0
    assert json.loads(site.get(f"/plan/{plan_id}"))["state"] == "done"
    assert feed.detail(plan_id)["result"]["plan_id"] == plan_id


def test_the_page_has_metrics(flying: Client, planner: Process) -> None:
    flying.goal("d2", "wait a little").result()
    site = Site(planner)

    def samples() -> dict:
        families = text_string_to_metric_families(site.get("/metrics").decode())
        return {(s.name, *sorted(s.labels.values())): s.value for f in families for s in f.samples}

    found = flying.until(
        lambda: (s := samples()).get(("timely_llm_results_total", "NONE", "normal")) and s,
        "the result's count",
    )
    assert found["timely_llm_robots", "alive"] == 2
    assert found["timely_llm_segments_total",] >= 3
    assert found["timely_llm_step_time_seconds",] > 0


def test_robots_are_stopped_from_top(flying: Client, feed: FleetFeed) -> None:
    told: queue.Queue[tuple[str, bool]] = queue.Queue()
    feed.stop_robots("d2", lambda *answer: told.put(answer))
    assert told.get(timeout=LIMIT) == ("stopped: d2", True)
    states = ["alive", "stopped"]
    flying.until(lambda: [r["state"] for r in feed.view()["robots"]] == states, "d2 to be stopped")
    feed.stop_robots("d9", lambda *answer: told.put(answer))
    words, done = told.get(timeout=LIMIT)
    assert (words[:13], done) == ("UNKNOWN_ROBOT", False)
    flying.call(Trigger, "/d2/robot_adapter/rearm")
    flying.until(lambda: {r["state"] for r in feed.view()["robots"]} == {"alive"}, "d2 rearmed")


def test_forged_messages_end_no_feed(client: Client) -> None:
    """Robots where no topic can be, numbers that cannot be: what comes after them is shown."""
    node = client.node
    robots = node.create_publisher(RobotList, "/forged/robots", LATCHED)
    status = node.create_publisher(PlannerStatus, "/forged/planner_status", 10)
    spaces = ("a b", "//", "/x//y", "x" * 300, "", "/")
    forged = [RobotInfo(robot_id=f"r{i}", robot_namespace=s) for i, s in enumerate(spaces)]
    robots.publish(RobotList(robots=forged))
    feed = FleetFeed("/forged")
    feed.start()
    try:

        def good() -> bool:
            status.publish(PlannerStatus(step_time=float("inf"), policy="forged"))
            status.publish(PlannerStatus(policy="good"))
            return feed.view()["planner"].get("policy") == "good"

        client.until(good, "the status")
        robots.publish(RobotList(robots=[RobotInfo(robot_id="d1", robot_namespace="/d1")]))
        client.until(lambda: [r["id"] for r in feed.view()["robots"]] == ["d1"], "the robot")
    finally:
        feed.close()


def command(*arguments: str, **options: object) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "timely_llm.cli", "top", *arguments],
        capture_output=True, text=True, cwd=ROOT, timeout=LIMIT, **options,
    )  # fmt: skip


def test_top_prints_the_picture_as_json(flying: Client) -> None:
    done = command("--json", "--timeout", str(LIMIT))
    assert (done.returncode, done.stderr) == (0, "")
    assert [robot["id"] for robot in json.loads(done.stdout)["robots"]] == ["d1", "d2"]


def test_top_says_where_it_found_no_planner(domain: int) -> None:
    done = command("--json", "--timeout", "0.2", "--namespace", "nobody")
    assert done.returncode == 3
    assert done.stderr.startswith("timely-llm: no planner answers on /nobody/planner_status in")


def test_top_wants_a_terminal() -> None:
    done = command(stdin=subprocess.DEVNULL)
    assert done.returncode == 2
    assert "this is no terminal: give --json" in done.stderr


def test_top_on_a_terminal_shows_the_fleet_and_quits(flying: Client) -> None:
    terminal, child = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "timely_llm.cli", "top"],
        stdin=child, stdout=child, stderr=child, cwd=ROOT,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "120", "LINES": "30"},
    ) as process:  # fmt: skip
        os.close(child)
        seen = b""
        while b"d1" not in seen or b"d2" not in seen:
            seen += os.read(terminal, 1 << 16)
        os.write(terminal, b"q")
        try:
            while os.read(terminal, 1 << 16):
                pass
        except OSError:  # how a terminal ends whose other side has gone
            pass
        assert process.wait(LIMIT) == 0
    os.close(terminal)
    assert b"Traceback" not in seen


@pytest.mark.parametrize(
    ("web", "words"),
    [
        ("nowhere", "parameter 'web': 'nowhere': must be HOST:PORT, such as 127.0.0.1:8088"),
        ("127.0.0.1:1000000", "port 1000000 must be at most 65535"),
        ("192.0.2.1:8088", "parameter 'web': 192.0.2.1:8088: "),
    ],
)
def test_a_page_that_cannot_be_is_refused(web: str, words: str) -> None:
    with pytest.raises(ParameterError, match=re.escape(words)):
        open_page({"web": web}, logging.getLogger())


def test_a_page_for_everybody_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        open_page({"web": "0.0.0.0:0"}, logging.getLogger()).close()
        open_page({"web": "0"}, logging.getLogger()).close()
        assert open_page({"web": ""}, logging.getLogger()) is None
    words = "whoever reaches this address can see the fleet and its instructions"
    assert [record.message for record in caplog.records] == [words]


def test_a_port_that_somebody_has_is_said_in_one_line(start, planner, flying) -> None:
    address = Site(planner).address
    second = start("planner", "__ns:=/other", **SIMULATED, web=address)
    assert second.wait() == 1
    assert second.output() == f"planner: parameter 'web': {address}: Address already in use\n"
