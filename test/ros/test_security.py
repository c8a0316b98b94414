"""``config/security/policy.xml`` against the graph of a fleet: each node's enclave names every
topic, service and action that the node uses, and no other."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from nodes import LIMIT, Client
from rclpy.node import Node

from timely_llm.cli.fleet_file import load_fleet
from timely_llm.paths import share
from timely_llm.protocols.messages import PlanGoal
from timely_llm.recording.bag import BagWriter
from timely_llm.ros.client import PlannerClient
from timely_llm.ros.recorder import Recorder

POLICY = share("config", "security", "policy.xml")
PLANS = Path(__file__).parents[2] / "test" / "data" / "plans.yaml"
ROOT = "/timely_llm/"
ACTION = {
    "service": ("send_goal", "cancel_goal", "get_result"),
    "topic": ("feedback", "status"),
}
#: What a demo does not use, and when it is used.
NOT_IN_A_DEMO = {"rt/clock": "use_sim_time", "/robot_adapter/recover": "a robot that can"}

Ends = set[tuple[str, str]]  # publish or subscribe, and the DDS topic


def topic_ends(name: str, publishes: bool) -> Ends:
    return {("publish" if publishes else "subscribe", f"rt{name}")}


def service_ends(name: str, replies: bool) -> Ends:
    asks, answers = ("subscribe", "publish") if replies else ("publish", "subscribe")
    return {(asks, f"rq{name}Request"), (answers, f"rr{name}Reply")}


def allowed() -> dict[str, Ends]:
    """The ends that each enclave may have, its names with wildcards; by the rules that sros2 makes
    DDS permissions by."""
    found: dict[str, Ends] = {}
    for enclave in ET.parse(POLICY).getroot().iter("enclave"):
        ends = found.setdefault(enclave.attrib["path"].removeprefix(ROOT), set())
        for profile in enclave.iter("profile"):
            for rules in profile:
                for rule in rules:
                    name = full_name(rule.text or "", profile)
                    for qualifier in rules.attrib:
                        ends |= _ends(rule.tag, name, qualifier)
    return found


def full_name(name: str, profile: ET.Element) -> str:
    space = profile.attrib["ns"].rstrip("/")
    if name.startswith("~"):
        return f"{space}/{profile.attrib['node']}{name[1:]}"
    return name if name.startswith("/") else f"{space}/{name}"


def _ends(tag: str, name: str, qualifier: str) -> Ends:
    if tag == "topic":
        return topic_ends(name, qualifier == "publish")
    if tag == "service":
        return service_ends(name, qualifier == "reply")
    serves = qualifier == "execute"
    services = (service_ends(f"{name}/_action/{part}", serves) for part in ACTION["service"])
    topics = (topic_ends(f"{name}/_action/{part}", serves) for part in ACTION["topic"])
    return set().union(*services, *topics)


def used(observer: Node, name: str, namespace: str) -> Ends:
    """The ends that the node of that name has in the graph."""
    ends: Ends = set()
    for topic, _ in observer.get_publisher_names_and_types_by_node(name, namespace):
        ends |= topic_ends(topic, True)
    for topic, _ in observer.get_subscriber_names_and_types_by_node(name, namespace):
        ends |= topic_ends(topic, False)
    for service, _ in observer.get_service_names_and_types_by_node(name, namespace):
        ends |= service_ends(service, True)
    for service, _ in observer.get_client_names_and_types_by_node(name, namespace):
        ends |= service_ends(service, False)
    return ends


def fits(end: tuple[str, str], rule: tuple[str, str]) -> bool:
    return end[0] == rule[0] and fnmatchcase(end[1], rule[1])


def idle(enclave: str, ends: Ends) -> list[tuple[str, str]]:
    """The rules of the enclave that a demo should use, and that none of these ends does."""
    rules = [rule for rule in allowed()[enclave] if not any(fits(end, rule) for end in ends)]
    return [rule for rule in rules if not any(part in rule[1] for part in NOT_IN_A_DEMO)]


@pytest.fixture(scope="module")
def fleet(start_for_module, tmp_path_factory) -> Iterator[dict[str, Ends]]:
    """What the nodes of a fleet use, by their enclaves: each of them has done all it can do."""
    start_for_module("planner", engine="simulated", model=PLANS)
    start_for_module("robot", "__ns:=/drone_1")
    observer = Client()
    observer.wait_for_robots("drone_1")
    found: dict[str, Ends] = {}

    def look(enclave: str, node: Node, name: str, namespace: str = "/") -> None:
        """The graph tells of an end some time after it was made, to its own node too."""

        def whole() -> bool:
            found[enclave] = used(node, name, namespace)
            return not idle(enclave, found[enclave])

        with contextlib.suppress(AssertionError):  # what is missing then, the test says
            observer.until(whole, f"the ends of {enclave}")

    with PlannerClient() as client, pytest.MonkeyPatch.context() as patch:
        patch.setattr(client.node, "destroy_client", lambda service: None)  # what it used stays
        client.wait_for_planner(LIMIT)
        client.watch_events(lambda event: None)
        client.watch_status(lambda status: None)
        client.watch_robots(lambda robots: None)
        client.watch_execution("drone_1", lambda report: None)
        assert [robot.robot_id for robot in client.robots()] == ["drone_1"]
        client.follow(client.send(PlanGoal("drone_1", "wait a little")), lambda: False)
        client.stop("drone_1")
        look("client", client.node, client.node.get_name())
    bag = tmp_path_factory.mktemp("bags") / "bag"
    with BagWriter(bag) as writer, Recorder(writer, "", lambda line: None) as recorder:
        while "/drone_1/segments" not in recorder.topics:
            recorder.spin()
        look("recorder", recorder.node, recorder.node.get_name())
    look("planner", observer.node, "planner")
    look("drone_1", observer.node, "robot_adapter", "/drone_1")
    yield found
    observer.close()


@pytest.mark.parametrize("enclave", ["planner", "client", "recorder", "drone_1"])
def test_an_enclave_names_all_that_its_node_uses_and_no_other(fleet, enclave: str) -> None:
    rules, ends = allowed()[enclave], fleet[enclave]
    assert sorted(end for end in ends if not any(fits(end, rule) for rule in rules)) == []
    assert idle(enclave, ends) == []


@pytest.mark.parametrize(
    ("end", "enclaves"),
    [
        (("publish", "rt/drone_1/segments"), {"planner"}),
        (("publish", "rt/drone_1/execution"), {"drone_1"}),
        (("publish", "rt/planner_status"), {"planner"}),
        (("publish", "rt/plan_events"), {"planner"}),
        (("publish", "rr/register_robotReply"), {"planner"}),
        (("publish", "rq/stop_robotRequest"), {"client"}),
        (("publish", "rq/plan/_action/send_goalRequest"), {"client"}),
        (("publish", "rq/plan/_action/cancel_goalRequest"), {"client"}),
        (("publish", "rq/drone_1/robot_adapter/rearmRequest"), {"operator"}),
        (("publish", "rq/planner/change_stateRequest"), set()),
        (("publish", "rq/planner/set_parametersRequest"), set()),
    ],
    ids=lambda value: value[1] if isinstance(value, tuple) else "",
)
def test_who_may_say_what(end: tuple[str, str], enclaves: set[str]) -> None:
    """Of the planner, the clients and one robot; another robot must not speak for it either."""
    found = {
        enclave
        for enclave, rules in allowed().items()
        if any(way == end[0] and fnmatchcase(end[1], name) for way, name in rules)
    }
    assert found == enclaves


def test_robots_may_ask_the_planner_and_the_operator_what_robots_serve() -> None:
    ends = allowed()
    asks = ("publish", "rq/register_robotRequest")
    robots = {robot.robot_id for robot in load_fleet(share("config", "fleets", "demo.yaml")).robots}
    assert {enclave for enclave, rules in ends.items() if asks in rules} == robots
    served = {name.replace("/drone_1/", "/*/") for way, name in ends["drone_1"] if way == "publish"}
    replies = {name for way, name in ends["operator"] if way == "subscribe" and "rr/*/r" in name}
    assert replies and replies <= served


def test_a_node_under_enforce(tmp_path: Path) -> None:
    """Keys of the ordinary tool; a node with an enclave comes up, one without is refused."""
    keystore = pytest.importorskip("sros2.keystore", reason="sros2 is not installed: no keys")
    keystore.create_keystore(tmp_path)
    keystore.create_enclave(tmp_path, f"{ROOT}planner")
    keystore.create_permission(tmp_path, f"{ROOT}planner", POLICY)

    def node(enclave: str) -> subprocess.CompletedProcess[str]:
        make = "import rclpy; rclpy.init(); rclpy.create_node('planner')"
        security = {"ROS_SECURITY_KEYSTORE": str(tmp_path), "ROS_SECURITY_ENABLE": "true"}
        security |= {"ROS_SECURITY_STRATEGY": "Enforce", "ROS_SECURITY_ENCLAVE_OVERRIDE": enclave}
        command = [sys.executable, "-c", make]
        return subprocess.run(command, env=os.environ | security, capture_output=True, text=True)

    stranger, ours = node("/stranger"), node(f"{ROOT}planner")
    assert stranger.returncode != 0
    if "security" in ours.stderr.lower() and ours.returncode:
        pytest.skip("this middleware is built without security")
    assert ours.returncode == 0, ours.stderr
