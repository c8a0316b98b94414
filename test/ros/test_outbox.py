"""Where each command of the planner goes, and when; exact logs, no clock and no DDS."""

from __future__ import annotations

import sys

import pytest

from timely_llm.core import events as ev
from timely_llm.estimation.learned_times import Learned
from timely_llm.protocols.messages import (
    NO_PLAN,
    ErrorCode,
    FeedbackState,
    PlanEvent,
    PlanEventType,
    PlanFeedback,
    PlanResult,
    Segment,
    SegmentCommand,
)
from timely_llm.ros import outbox
from timely_llm.ros.outbox import Outbox

EVENT = ev.EmitEvent(PlanEvent(NO_PLAN, "d1", PlanEventType.STARTED, 0.0))
FEEDBACK = ev.EmitFeedback(PlanFeedback(NO_PLAN, FeedbackState.GENERATING))
SEGMENT = ev.SendSegment("d1", Segment(1, NO_PLAN, 0, SegmentCommand.RUN, "tu(90)"))
END = ev.EndGoal(PlanResult(NO_PLAN, ErrorCode.NONE))


class Part:
    """Stands in for a part of the node: logs what is asked of it."""

    instance = "ab" * 16
    fails = False

    def __init__(self, name: str, log: list[str]) -> None:
        self._name, self._log = name, log

    def __getattr__(self, method: str):
        def does(*arguments) -> None:
            self._log.append(f"{self._name}.{method}")
            if self.fails:
                raise RuntimeError("a test")

        return does


class World:
    """An outbox between parts that log; tasks wait until ``run``."""

    def __init__(self, monkeypatch) -> None:
        self.log: list[str] = []
        self.tasks: list = []
        self.now = 100.0
        monkeypatch.setattr(outbox, "time", self)
        names = ("links", "plans", "services", "times", "fleet")
        self.parts = {name: Part(name, self.log) for name in names}
        self.outbox = Outbox(self, self, lambda: 5.0, *self.parts.values())

    def monotonic(self) -> float:
        return self.now

    def create_publisher(self, kind, topic, qos) -> Part:
        return Part(topic, self.log)

    def create_task(self, task) -> None:
        self.tasks.append(task)

    def get_logger(self) -> World:
        return self

    def error(self, words: str, throttle_duration_sec: float) -> None:
        self.log.append("error")

    def tell(self) -> None:
        self.log.append(f"logged {sys.exc_info()[1]}")

    def run(self) -> list[str]:
        """Do what the executor has to do; the whole log."""
        while self.tasks:
            self.tasks.pop(0)()
        return self.log


@pytest.fixture
def world(monkeypatch) -> World:
    return World(monkeypatch)


@pytest.mark.parametrize(
    ("command", "log"),
    [
        (SEGMENT, ["links.send"]),
        (EVENT, ["plan_events.publish", "fleet.event"]),
        (FEEDBACK, ["plans.feedback"]),
        (END, ["plans.end"]),
        (ev.Registered(1, 2), ["services.answer"]),
        (ev.Answered(1), ["services.answer"]),
        (ev.Probed(1), ["services.answer"]),
        (ev.RobotsChanged(()), ["robots.publish", "fleet.robots"]),
        (ev.TimesLearned(Learned()), ["times.keep"]),
        (ev.RobotFaulted("d1", "a test"), ["error"]),
        (ev.SkillDrifted("d1", "mf", 1.5), ["times.drifted"]),
    ],
)
def test_every_command_has_its_place(world: World, command, log) -> None:
    world.outbox.put([command], True)
    assert world.run() == log


def test_a_list_of_robots_is_repeated_twice(world: World) -> None:
    """The last of several lists may lie at a reader until another one comes."""
    world.outbox.put([ev.RobotsChanged(())] * 3, True)
    world.run()
    world.log.clear()
    for _ in range(5):
        world.outbox.repeat_robots()
    assert world.log == ["robots.publish"] * 2


def test_segments_go_out_at_once_and_the_rest_in_the_executor(world: World) -> None:
    world.outbox.put([END, SEGMENT], False)
    assert world.log == ["links.send"]
    assert world.run() == ["links.send", "plans.end"]


def test_events_wait_while_the_engine_steps(world: World) -> None:
    world.outbox.put([EVENT, FEEDBACK], False)
    world.now += 0.09
    world.outbox.put([EVENT], False)
    assert world.tasks == []
    world.now += 0.02
    world.outbox.put([EVENT], False)
    assert len(world.tasks) == 1
    assert world.run().count("fleet.event") == 3


@pytest.mark.parametrize(
    ("commands", "rests"), [([EVENT], True), ([EVENT, END], False), ([], True)]
)
def test_events_go_with_what_somebody_waits_for_and_when_the_engine_rests(
    world: World, commands, rests
) -> None:
    world.outbox.put([FEEDBACK], False)
    world.outbox.put(commands, rests)
    assert world.run()[0] == "plans.feedback"


def test_the_executor_is_woken_once(world: World) -> None:
    for _ in range(3):
        world.outbox.put([END], True)
    assert len(world.tasks) == 1
    assert world.run() == ["plans.end"] * 3
    world.outbox.put([END], True)
    assert len(world.tasks) == 1


def test_what_an_engine_puts_that_was_given_up_is_dropped(world: World) -> None:
    world.outbox.put([EVENT], False)
    world.outbox.close()
    world.outbox.put([SEGMENT, END], True)
    assert world.run() == []
    world.outbox.flush()
    assert world.log == ["plan_events.publish", "fleet.event"]


def test_a_command_that_fails_costs_no_other_one(world: World) -> None:
    world.parts["services"].fails = world.parts["links"].fails = True
    world.outbox.put([SEGMENT, ev.Registered(1, 2), SEGMENT, END], True)
    assert world.run() == [
        *["links.send", "logged a test"] * 2,
        *["services.answer", "logged a test", "plans.end"],
    ]
