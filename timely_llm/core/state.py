"""All live plans, and what can be done to one: start, send, stop, end. Commands pile up in ``out``.

Who does it and why stands in ``intake.py`` (goals), ``reports.py`` (robots' reports and silence),
``registration.py`` (robots coming and going) and ``planner.py`` (the loop).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from timely_llm.core import events as ev
from timely_llm.core.goals import REFUSE, PlannerConfig, urgency_of
from timely_llm.core.overload import reason_to_refuse
from timely_llm.core.prefix_cache import PrefixCache
from timely_llm.core.request import FEEDBACK, Move, Request, State
from timely_llm.core.robots import Fleet, Robot
from timely_llm.core.views import Views
from timely_llm.language.segmenter import MakeSegmenter, Segmenter, make_segmenter
from timely_llm.prompts.template import PromptTemplate, TemplateError
from timely_llm.protocols.engine import (
    Engine,
    EngineDead,
    EngineError,
    EngineRequest,
    PromptTooLong,
)
from timely_llm.protocols.messages import (
    ErrorCode,
    PlanEvent,
    PlanEventType,
    PlanFeedback,
    Segment,
    SegmentCommand,
    SkillCall,
)


@dataclass(slots=True)
class Writing:
    """What it takes to write one plan: its robot, and how it is cut into sound segments."""

    robot: Robot
    segmenter: Segmenter


@dataclass(slots=True)
class Probe:
    """A robot's question to the model: who asked, until when (s) it is of use, what is written."""

    ticket: int
    deadline: float
    uncached: int  # prompt tokens that the engine has yet to compute
    text: list[str] = field(default_factory=list)


class Plans:
    """The live plans of one planner.

    ``live`` holds every plan that has not ended, ``writing`` those the engine knows, both by plan
    id in order of arrival; ``probes`` are robots' questions to the model. ``due`` is the next time
    at which silence must be looked at. Without ``observed`` nobody reads events and
    feedback: none are made.
    """

    def __init__(
        self,
        config: PlannerConfig,
        engine: Engine,
        prompts: PromptTemplate,
        fleet: Fleet,
        segmenter: MakeSegmenter | None = None,
        observed: bool = True,
    ) -> None:
        self.config, self.engine, self.prompts, self.fleet = config, engine, prompts, fleet
        self._make_segmenter = segmenter or (lambda kind, plan_id: make_segmenter(kind))
        self.observed = observed
        self.live: dict[str, Request] = {}
        self.writing: dict[str, Writing] = {}
        self.views = Views()
        self.prefixes = PrefixCache(engine, config.max_tokens)
        self.probes: dict[str, Probe] = {}
        self.out: list[ev.Command] = []
        self.latency: Callable[[int, int, int], float] | None = None  # of the engine's steps
        self.due = math.inf
        self.active = True
        self._numbers = 0

    def drain(self) -> list[ev.Command]:
        """The commands since the last call, in order."""
        out, self.out = self.out, []
        return out

    def number(self) -> int:
        """Counts up: every request's own number, in which every order ends."""
        self._numbers += 1
        return self._numbers

    def robot_of(self, plan: Request) -> Robot | None:
        return self.fleet.robots.get(plan.goal.robot_id)

    # Reporting.

    def emit(self, plan: Request, kind: PlanEventType, now: float, **fields) -> None:
        """Record a change of ``plan``'s state."""
        if not self.observed:
            return
        event = PlanEvent(plan.plan_id, plan.goal.robot_id, kind, now, **fields)
        self.out.append(ev.EmitEvent(event))

    def feedback(self, plan: Request, now: float, text: str = "", position: int = 0) -> None:
        """Tell the goal's client how far it is."""
        if not self.observed:
            return
        self.out.append(
            ev.EmitFeedback(
                PlanFeedback(
                    plan.plan_id,
                    FEEDBACK[plan.state],
                    position,
                    max(0, len(plan.segments) - 1),
                    text,
                    max(0.0, plan.horizon.remaining(now)),
                )
            )
        )

    def robots_changed(self) -> None:
        self.out.append(ev.RobotsChanged(self.fleet.infos()))

    def look_at(self, when: float) -> None:
        """Silence must be looked at by ``when``."""
        self.due = min(self.due, when)

    # One plan's way.

    def start(self, plan: Request, robot: Robot, now: float) -> None:
        """Start the plan's clock and hand it to the engine, unless it came too late for that."""
        plan.starts(now)
        if reason := self._overloaded(plan, robot):
            self.end(plan, ErrorCode.OVERLOADED, reason, now)
            return
        plan.move(Move.START)
        code, error = self.submit(plan, robot, now)
        if code is not ErrorCode.NONE:
            self.end(plan, code, error, now)

    def _overloaded(self, plan: Request, robot: Robot) -> str:
        """Why the goal is refused for overload; empty where it is not, or is not to be."""
        if self.config.overload != REFUSE or self.latency is None:
            return ""
        writing = [(self.live[plan_id], other.robot) for plan_id, other in self.writing.items()]
        batch, network = self.engine.info.max_batch, self.config.network
        return reason_to_refuse(writing, plan, robot, self.latency, batch, network)

    def submit(self, plan: Request, robot: Robot, now: float) -> tuple[ErrorCode, str]:
        """Hand a plan that waits to the engine; or why that cannot be."""
        try:
            self._request(plan, robot)
        except EngineDead as error:
            return ErrorCode.ENGINE_FAILED, str(error)
        except PromptTooLong as error:
            return ErrorCode.INVALID_GOAL, f"{_words_of(plan)} are too long: {error}"
        except (TemplateError, EngineError) as error:
            return ErrorCode.INVALID_GOAL, str(error)
        plan.uncached = plan.prompt_tokens - self.prefixes.cached(robot.prefix)
        plan.horizon.times = robot.times
        segmenter = self._make_segmenter(robot.skills, plan.plan_id)
        self.writing[plan.plan_id] = Writing(robot, segmenter)
        self.views.add(plan.plan_id)
        self.feedback(plan, now)
        return ErrorCode.NONE, ""

    def _request(self, plan: Request, robot: Robot) -> None:
        request = EngineRequest(
            id=plan.plan_id,
            number=plan.number,
            system=robot.system,
            user=self._words(plan, robot),
            grammar=robot.grammar,
            max_tokens=self.config.max_tokens,
            priority=urgency_of(plan.goal),
        )
        plan.prompt_tokens = self.engine.submit(request)
        need, room = self.prefixes.need(robot.prefix, plan.prompt_tokens), self.prefixes.room
        if need > room:
            self.engine.abort(plan.plan_id)
            raise PromptTooLong(
                f"prompt of {plan.prompt_tokens} tokens and max_tokens {self.config.max_tokens} "
                f"need {need} KV blocks: there are {room} beside the robots' fixed prompts"
            )

    def _words(self, plan: Request, robot: Robot) -> str:
        skills, scene, instruction = robot.skills, plan.goal.scene, plan.goal.instruction
        if plan.attempts:
            return self.prompts.replan(skills, scene, instruction, plan.attempts)
        return self.prompts.user(skills, scene, instruction)

    def send(
        self,
        plan: Request,
        robot: Robot,
        text: str,
        calls: Sequence[SkillCall],
        last: bool,
        now: float,
    ) -> None:
        """Send the next segment of ``plan`` to its robot, once."""
        index, first = len(plan.segments), plan.unsent
        replaces = first and (plan.replaces or plan.attempts)
        command = SegmentCommand.REPLACE if replaces else SegmentCommand.RUN
        segment = Segment(
            robot.session, plan.plan_id, index, command, text, tuple(calls), last, now
        )
        self.out.append(ev.SendSegment(robot.robot_id, segment))
        plan.segments.append(text)
        plan.unacknowledged[index] = now
        self.look_at(now + self.config.ack_timeout)
        plan.horizon.sent(index, calls, now + self.config.network)
        if first:
            plan.responded(now)
        self.emit(
            plan,
            PlanEventType.SEGMENT,
            now,
            segment=index,
            text=text,
            last=last,
            tokens=plan.segment_tokens,
            step_times=tuple(plan.step_times),
        )
        self.feedback(plan, now, text)
        self.views.touch(plan.plan_id)
        if plan.segment_tokens and robot.lengths.observe(plan.segment_tokens):
            self.views.touch_all(
                other for other, w in self.writing.items() if w.robot.lengths is robot.lengths
            )
        plan.segment_tokens = 0
        plan.step_times.clear()

    def command(self, robot: Robot, command: SegmentCommand, plan_id: str, now: float) -> None:
        """Send a command without text; it belongs to no index."""
        segment = Segment(robot.session, plan_id, 0, command, stamp=now)
        self.out.append(ev.SendSegment(robot.robot_id, segment))

    def leave_engine(self, plan: Request) -> None:
        """Nothing more of ``plan`` is to be written."""
        if self.writing.pop(plan.plan_id, None) is not None:
            self.views.drop(plan.plan_id)
            self.engine.abort(plan.plan_id)

    def written(self, plan: Request) -> None:
        """``plan`` is written to its end."""
        plan.move(Move.FINISH)
        del self.writing[plan.plan_id]
        self.views.drop(plan.plan_id)

    def stop(
        self, plan: Request, code: ErrorCode, error: str, now: float, *, tell: bool = True
    ) -> None:
        """Stop writing and, if anything was sent, the robot; the plan ends when it stands still.

        ``tell`` False: the robot stops by itself, or is told by other means.
        """
        if plan.state in (State.STOPPING, State.ENDED):
            return
        self.leave_engine(plan)
        robot = self.robot_of(plan)
        if plan.unsent or robot is None or not robot.alive:
            self.end(plan, code, error, now)
            return
        plan.move(Move.STOP)
        plan.code, plan.error = code, error
        plan.stop_deadline = now + self.config.stop_timeout
        self.look_at(plan.stop_deadline)
        if tell:
            self.command(robot, SegmentCommand.CANCEL, plan.plan_id, now)
        self.feedback(plan, now)

    def end(self, plan: Request, code: ErrorCode, error: str, now: float) -> None:
        """End the plan with a result; its robot turns to the next one."""
        if plan.ended:
            return
        self.leave_engine(plan)
        never_started = plan.state is State.QUEUED
        plan.move(Move.END)
        self.live.pop(plan.plan_id, None)
        result = plan.result(code, error, now)
        kind = PlanEventType.REFUSED if never_started else PlanEventType.ENDED
        self.emit(plan, kind, now, result=result, recomputed_tokens=plan.recomputed_tokens)
        self.out.append(ev.EndGoal(result))
        robot = self.robot_of(plan)
        if robot is not None:
            self._released(robot, plan, now)

    def _released(self, robot: Robot, plan: Request, now: float) -> None:
        if plan in robot.queue:
            robot.queue.remove(plan)
            self._tell_places(robot, now)
            return
        if robot.current is not plan:
            return
        old = plan.replaced
        if old is not None and not old.ended and old.state is not State.STOPPING:
            robot.current = old  # its replacement came to nothing and never touched the robot
            return
        robot.current = None
        self.next(robot, now)

    def next(self, robot: Robot, now: float) -> None:
        """Start the goal that waits longest for a free robot, and the next if that is refused."""
        if robot.choosing:
            return  # one of the loop below was refused
        robot.choosing, waiting = True, len(robot.queue)
        while robot.queue and robot.current is None and robot.alive and not robot.stopped:
            robot.current = plan = robot.queue.popleft()
            self.start(plan, robot, now)
        robot.choosing = False
        if len(robot.queue) < waiting:
            self._tell_places(robot, now)

    def _tell_places(self, robot: Robot, now: float) -> None:
        """Everyone in the robot's queue has moved up."""
        for place, waiting in enumerate(robot.queue, 1):
            self.feedback(waiting, now, position=place)


def _words_of(plan: Request) -> str:
    """What a plan's prompt is made of, besides its robot's fixed prompt."""
    goal = plan.goal
    instruction = f"instruction ({len(goal.instruction)} characters)"
    scene = f"scene ({len(goal.scene)} characters)"
    if plan.attempts:
        return f"{instruction}, {scene} and execution history"
    return f"{instruction} and {scene}"
