"""Plans that are not known beforehand, for simulated robots that read as the text comes. Pure."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence

from timely_llm.language.instructions import Call, Instruction, Skip
from timely_llm.language.parser import Parser, parse
from timely_llm.language.skills import SkillSet
from timely_llm.protocols.messages import Execution, Segment, SegmentCommand, SkillCall
from timely_llm.simulation.known_plans import Action, walk, work_before
from timely_llm.simulation.robots import SimRobot
from timely_llm.simulation.trace import Arrival


class WrittenPlan:
    """What a robot is to do, as far as it is written; like ``KnownPlan``, but it grows.

    A call takes as long as the trace says for the same call at the same place of its answer, else
    a time drawn by ``rng``. ``ends`` is infinite until the end is written.
    """

    def __init__(self, skills: SkillSet, arrival: Arrival, rng: random.Random) -> None:
        self._skills, self._rng = skills, rng
        known = parse(arrival.task.plan, skills)
        self._known = list(zip(known, arrival.durations, strict=False))
        self._parser = Parser(skills)
        self._calls: list[SkillCall] = []
        self._written: list[float] = []
        self.actions: list[Action] = []
        self.durations: list[float] = []
        self.ahead: Sequence[float] = [0.0]
        self.ends: float = math.inf

    def grow(self, segment: Segment) -> None:
        """Read the next segment; ``PlanError`` if it is not sound."""
        parser = self._parser
        parser.feed(segment.text)
        if segment.last:
            parser.finish()
        self._calls.extend(segment.calls)
        for call in parser.calls[len(self.durations) :]:
            self.durations.append(self._duration(call))
        self._written.append(len(parser.program))
        # What is not written yet comes in a segment that is not there yet.
        written = self._written if segment.last else [*self._written, math.inf]
        self.actions, ends = walk(
            _complete(parser.program), self._calls, written, self._skills.bounds.max_steps
        )
        self.ends = ends if segment.last or ends < len(self._written) else math.inf
        self.ahead = work_before(self.actions)

    def _duration(self, call: Call) -> float:
        index = len(self.durations)
        if index < len(self._known):
            known, duration = self._known[index]
            if (known.name, known.arguments) == (call.name, call.arguments):
                return duration
        return self._skills[call.name].sample_duration(call.values, self._rng)


def _complete(program: Sequence[Instruction]) -> Sequence[Instruction]:
    """The instructions before the first one whose target is not written yet."""
    for place, instruction in enumerate(program):
        if isinstance(instruction, Skip) and instruction.target is None:
            return program[:place]
    return program


class WrittenRobots:
    """Robots that do what a model writes now. ``seed`` draws how long calls take that the trace
    does not know."""

    def __init__(
        self, arrivals: Sequence[Arrival], kinds: Mapping[str, SkillSet], seed: int
    ) -> None:
        self._arrivals, self._kinds, self._seed = arrivals, kinds, seed

    def deliver(self, robot: SimRobot, segment: Segment, now: float) -> Sequence[Execution]:
        """A plan that takes the place of another halts that; what is told to stop is halted."""
        if segment.command not in (SegmentCommand.RUN, SegmentCommand.REPLACE):
            return robot.halt(now) if segment.plan_id == robot.plan_id else []
        reports = robot.halt(now) if segment.command is SegmentCommand.REPLACE else []
        if segment.index == 0 or segment.command is SegmentCommand.REPLACE:
            number = int(segment.plan_id)
            arrival = self._arrivals[number]
            rng = random.Random(f"{self._seed} {number}")
            plan = WrittenPlan(self._kinds[arrival.task.kind], arrival, rng)
            robot.take(segment.plan_id, plan, plan.durations)
        return reports + robot.receive(segment, now)


def filled(texts: Sequence[str]) -> tuple[str, ...]:
    """``texts`` of which none is empty: one that is, as the end token's, takes the last character
    of those before it. Fewer of them, where there are more than characters."""
    found = list(texts)
    for i in range(len(found) - 1, 0, -1):
        if not found[i]:
            giver = next((k for k in range(i - 1, -1, -1) if found[k]), None)
            if giver is None:
                break
            found[i], found[giver] = found[giver][-1], found[giver][:-1]
    return tuple(text for text in found if text)
