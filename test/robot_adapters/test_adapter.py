"""What an adapter must have, what it may leave out, and what the page about it says."""

import re

import pytest
from plan_language import ROOT

from robot_adapters.adapter import (
    ADAPTERS,
    OWN,
    PARTS,
    Adapter,
    AdapterError,
    Notified,
    OnNode,
    Progress,
    adapter_class,
)
from timely_llm.protocols.messages import SkillCall

CALL = SkillCall("go")


class Smallest(Adapter):
    """Has what has no answer in the protocol."""

    PARAMETERS = ()

    def __init__(self) -> None:
        self.halts: list[float] = []

    def start(self, call, now): ...

    def poll(self, now):
        return Progress(True)

    def next_poll(self, now):
        return None

    def halt(self, now):
        self.halts.append(now)

    hold = halt


class Halfway(Smallest):
    """Leaves out what it must have."""

    poll = Adapter.poll


def test_the_rest_has_an_answer() -> None:
    assert adapter_class(f"{__name__}:Smallest") is Smallest
    robot = Smallest()
    assert (robot.check(CALL), robot.travel(CALL), robot.resume(1.0)) == (None, 0.0, None)
    assert (robot.observe(), robot.diagnostics()) == ("[]", {})
    robot.close(2.0)
    assert robot.halts == [2.0]
    assert not isinstance(robot, OnNode) and not isinstance(robot, Notified)


def test_what_is_lacking_is_named() -> None:
    with pytest.raises(AdapterError, match="Halfway lacks poll$"):
        adapter_class(f"{__name__}:Halfway")
    with pytest.raises(AdapterError, match="Progress lacks PARAMETERS, check, close, diagnostics"):
        adapter_class("robot_adapters.adapter:Progress")


def test_the_simulated_adapter_has_it_all() -> None:
    cls = adapter_class("simulated")
    assert all(hasattr(cls, part) for part in PARTS)
    assert set(OWN) < set(PARTS)


def test_the_pages_have_every_part_and_every_name() -> None:
    own, running = ((ROOT / "docs" / name).read_text() for name in ("your_robot.md", "robots.md"))
    rows = re.findall(r"^\| `(\w+)(?:\(.*?\))?` \|", own, re.MULTILINE)
    assert {*PARTS, "__init__", "attach", "notice"} <= set(rows)
    row = re.search(r"^\| `adapter` .*$", running, re.MULTILINE)[0]
    assert all(f"`{name}`" in row for name in ADAPTERS)
