"""The planner's state, and every way in which a request changes: from its goal to its result.

This is the one owner: who decides (``goals``, ``reports``, ``registration``, ``probes``, the loop
in ``planner``) reads, calls the transitions here and those of a request, and sets no field of one.
Commands pile up in ``out``. Times are s.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from timely_llm.core import events as ev
from timely_llm.core.config import REFUSE, PlannerConfig, urgency_of
from timely_llm.core.outputs import Reader
from timely_llm.core.overload import reason_to_refuse
from timely_llm.core.prefix_cache import PrefixCache
from timely_llm.core.request import FEEDBACK, Move, Request, State
from timely_llm.core.robots import Fleet, Robot
from timely_llm.core.views import Views
from timely_llm.estimation.step_time import Latency
from timely_llm.language.segmenter import MakeSegmenter, make_segmenter
from timely_llm.prompts.history import Attempt
from timely_llm.prompts.template import PromptTemplate, TemplateError
from timely_llm.protocols.engine import (
    Engine,
    EngineDead,
    EngineError,
    PromptTooLong,
    StepResult,
)
from timely_llm.protocols.messages import (
    NO_PLAN,
    ErrorCode,
    PlanEvent,
    PlanEventType,
    PlanFeedback,
    PlanGoal,
    Segment,
    SegmentCommand,
    SkillCall,
)


@dataclass(slots=True)
class Generating:
    """What it takes to write one request's plan: its robot, and what cuts and checks the text."""

    robot: Robot
    reader: Reader


@dataclass(frozen=True, slots=True)
class Counts:
    """How many robots and requests there are, by what they do, and how full the KV cache is."""

    robots: int = 0
    waiting: int = 0  # their first segment is not begun
    running: int = 0
    suspended: int = 0
    executing: int = 0  # written to the end, or being stopped
    kv_blocks_used: int = 0
    kv_blocks_total: int = 0
    recomputed_tokens: int = 0


_COUNTED = {
    State.QUEUED: "waiting",
    State.WAITING: "waiting",
    State.RUNNING: "running",
    State.SUSPENDED: "suspended",
    State.EVICTED: "suspended",
    State.WRITTEN: "executing",
    State.STOPPING: "executing",
}


class PlannerState:
    """All live requests, the robots they are for, and what the engine holds for them.

    ``requests`` holds every request that has not ended, ``generating`` those the engine knows, both
    by plan id in order of arrival. ``due`` is the next time at which silence must be looked at.
    ``segmenter`` makes the segmenter of a plan from its robot's kind and its id. Without
    ``observed`` nobody reads events and feedback: none are made.
    """

    def __init__(
        self,
        config: PlannerConfig,
        engine: Engine,
        prompts: PromptTemplate,
        fleet: Fleet,
        latency: Latency,
        segmenter: MakeSegmenter | None = None,
        observed: bool = True,
    ) -> None:
        self.config, self.engine, self.prompts, self.fleet = config, engine, prompts, fleet
        self.latency = latency  # of the engine's steps
        self.observed = observed
        self.requests: dict[str, Request] = {}
        self.generating: dict[str, Generating] = {}
        self.views = Views()
        self.prefixes = PrefixCache(engine, config.max_tokens)
        self.out: list[ev.Command] = []
        self.due = math.inf
        self.active = True
        self._make_segmenter = segmenter or (lambda kind, plan_id: make_segmenter(kind))
        self._numbers = 0

    # Looking things up.

    def number(self) -> int:
        """Counts up: every request's own number, in which every order ends."""
        self._numbers += 1
        return self._numbers

    def robot_of(self, request: Request) -> Robot | None:
        """The robot that the request is for, unless it is unregistered by now."""
        return self.fleet.robots.get(request.goal.robot_id)

    def lost_at(self, robot: Robot) -> float:
        """When the robot is lost unless it is heard before, in s."""
        config, timeout = self.config, self.config.heartbeat_timeout
        return robot.last_heard + (timeout if robot.spoke else config.first_report_timeout)

    def requests_of(self, robot: Robot) -> list[Request]:
        """All live requests for the robot, in order of arrival."""
        return [r for r in self.requests.values() if r.goal.robot_id == robot.robot_id]

    def counts(self, last_step: StepResult, recomputed_tokens: int) -> Counts:
        """A snapshot for people; ``last_step`` knows how full the KV cache is."""
        return Counts(
            robots=len(self.fleet.robots),
            kv_blocks_used=last_step.kv_blocks_used,
            kv_blocks_total=self.engine.info.kv_blocks,
            recomputed_tokens=recomputed_tokens,
            **Counter(_COUNTED[request.state] for request in self.requests.values()),
        )

    # What goes out.

    def drain(self) -> list[ev.Command]:
        """The commands since the last call, in order."""
        out, self.out = self.out, []
        return out

    def emit(self, request: Request, kind: PlanEventType, now: float, **fields: Any) -> None:
        """Record a change of the request's state."""
        if self.observed:
            event = PlanEvent(request.plan_id, request.goal.robot_id, kind, now, **fields)
            self.out.append(ev.EmitEvent(event))

    def feedback(self, request: Request, now: float, text: str = "", position: int = 0) -> None:
        """Tell the goal's client how far it is."""
        if not self.observed:
            return
        feedback = PlanFeedback(
            request.plan_id,
            FEEDBACK[request.state],
            position,
            max(0, len(request.segments) - 1),
            text,
            max(0.0, request.horizon.remaining(now)),
        )
        self.out.append(ev.EmitFeedback(feedback))

    def command(self, robot: Robot, command: SegmentCommand, plan_id: str, now: float) -> None:
        """Send a command without text; it belongs to no index."""
        segment = Segment(robot.session, plan_id, 0, command, stamp=now)
        self.out.append(ev.SendSegment(robot.robot_id, segment))

    def robots_changed(self) -> None:
        """Tell who is there now, alive and stopped or not."""
        self.out.append(ev.RobotsChanged(self.fleet.infos()))

    def look_at(self, when: float) -> None:
        """Silence must be looked at by ``when``."""
        self.due = min(self.due, when)

    # A request comes: it gets its robot, waits for it, or takes it from another.

    def accept(self, plan_id: str, goal: PlanGoal, now: float) -> Request:
        """A goal has come: its request, queued for nobody yet."""
        utility = self.config.utility_of(goal)
        request = Request(plan_id, self.number(), goal, utility, arrival=now)
        self.requests[plan_id] = request
        self.emit(request, PlanEventType.ACCEPTED, now, goal=goal)
        return request

    def assign(self, robot: Robot, request: Request, now: float) -> None:
        """The free robot is this request's: its clock starts."""
        robot.current = request
        self._start(request, robot, now)

    def enqueue(self, robot: Robot, request: Request, now: float) -> None:
        """The request waits for its robot, behind those that wait already."""
        robot.queue.append(request)
        self.emit(request, PlanEventType.QUEUED, now)
        self.feedback(request, now, position=len(robot.queue))

    def take_over(self, robot: Robot, request: Request, now: float) -> Request | None:
        """The request gets the robot of another one, which goes on until the first segment is
        there; that other one, or None where it has ended or ``request`` was refused."""
        old = robot.current
        assert old is not None
        request.replaces, request.replaced = True, old
        self.assign(robot, request, now)
        if request.ended:  # refused after all: ``old`` has its robot back
            return None
        if (
            old.replaces and not old.segments
        ):  # the robot still works on what ``old`` was to replace
            request.replaced = old.replaced
            self.preempted(old, now)
        return request.replaced

    def preempted(self, old: Request, now: float) -> None:
        """``old`` has lost its robot to another request, which tells the robot so."""
        if old.state not in (State.STOPPING, State.ENDED):
            self.emit(old, PlanEventType.PREEMPTED, now)
            self.end(old, ErrorCode.PREEMPTED, "another goal took the robot", now)

    def next(self, robot: Robot, now: float) -> None:
        """Start the goal that waits longest for a free robot, and the next if that is refused."""
        if robot.choosing:
            return  # one of the loop below was refused
        robot.choosing, waiting = True, len(robot.queue)
        while robot.queue and robot.current is None and robot.alive and not robot.stopped:
            self.assign(robot, robot.queue.popleft(), now)
        robot.choosing = False
        if len(robot.queue) < waiting:
            self._tell_places(robot, now)

    def _tell_places(self, robot: Robot, now: float) -> None:
        """Everyone in the robot's queue has moved up."""
        for place, waiting in enumerate(robot.queue, 1):
            self.feedback(waiting, now, position=place)

    # It is handed to the engine.

    def _start(self, request: Request, robot: Robot, now: float) -> None:
        """Start the request's clock and submit it, unless it came too late for that."""
        request.starts(now)
        if reason := self._overloaded(request, robot):
            self.end(request, ErrorCode.OVERLOADED, reason, now)
            return
        request.move(Move.START)
        code, error = self._submit(request, robot, now)
        if code is not ErrorCode.NONE:
            self.end(request, code, error, now)

    def _overloaded(self, request: Request, robot: Robot) -> str:
        """Why the goal is refused for overload; empty where it is not, or is not to be."""
        if self.config.overload != REFUSE:
            return ""
        waiting = [(self.requests[name], other.robot) for name, other in self.generating.items()]
        batch, network = self.engine.info.max_batch, self.config.network
        return reason_to_refuse(waiting, request, robot, self.latency, batch, network)

    def _submit(self, request: Request, robot: Robot, now: float) -> tuple[ErrorCode, str]:
        """Hand a request that waits to the engine; or why that cannot be."""
        try:
            self._submit_prompt(request, robot)
        except EngineDead as error:
            return ErrorCode.ENGINE_FAILED, str(error)
        except PromptTooLong as error:
            return ErrorCode.INVALID_GOAL, f"{_prompt_parts(request)} are too long: {error}"
        except (TemplateError, EngineError) as error:
            return ErrorCode.INVALID_GOAL, str(error)
        request.uncached = request.prompt_tokens - self.prefixes.cached(robot.prefix)
        request.horizon.times = robot.times
        segmenter, config = self._make_segmenter(robot.skills, request.plan_id), self.config
        reader = Reader(segmenter, robot.skills, config.max_tokens, config.min_logprob)
        self.generating[request.plan_id] = Generating(robot, reader)
        self.views.add(request.plan_id)
        self.feedback(request, now)
        return ErrorCode.NONE, ""

    def _submit_prompt(self, request: Request, robot: Robot) -> None:
        asked = robot.fixed.request(
            request.plan_id,
            request.number,
            self._user_prompt(request, robot),
            self.config.max_tokens,
            priority=urgency_of(request.goal),
        )
        request.prompt_tokens = self.engine.submit(asked)
        need, room = self.prefixes.need(robot.prefix, request.prompt_tokens), self.prefixes.room
        if need > room:
            self.engine.abort(request.plan_id)
            raise PromptTooLong(
                f"prompt of {request.prompt_tokens} tokens and max_tokens {self.config.max_tokens} "
                f"need {need} KV blocks: there are {room} beside the robots' fixed prompts"
            )

    def _user_prompt(self, request: Request, robot: Robot) -> str:
        skills, scene, instruction = robot.skills, request.goal.scene, request.goal.instruction
        if request.attempts:
            return self.prompts.replan(skills, scene, instruction, request.attempts)
        return self.prompts.user(skills, scene, instruction)

    def refuse(self, request: Request, error: str) -> None:
        """The check refuses what was written next: the robot carries out what it has."""
        self._leave_engine(request)
        request.refuse(error)

    def replan(
        self, request: Request, attempt: Attempt, code: ErrorCode, error: str, now: float
    ) -> None:
        """What was begun has failed: another plan is to be written for the same goal, as for one
        that comes now. ``code`` and ``error`` are the end of this one; they are the goal's where
        there cannot be another."""
        robot = self.robot_of(request)
        assert robot is not None
        result = request.result(code, error, now)
        self._leave_engine(request)
        request.replan(attempt, self.number(), now)
        first = request.first_index
        self.emit(request, PlanEventType.REPLANNED, now, segment=first, result=result)
        refusal, reason = self._submit(request, robot, now)
        if refusal is ErrorCode.ENGINE_FAILED:
            self.end(request, refusal, reason, now)
        elif refusal is not ErrorCode.NONE:
            self.end(request, code, f"{error}; it cannot be planned again: {reason}", now)

    # The engine computes it.

    def run(self, request: Request, now: float) -> None:
        """It is in the run set from now on."""
        kind = PlanEventType.RESUMED if request.begun else PlanEventType.STARTED
        request.move(Move.RUN)
        request.begun = True
        self._report_move(request, kind, now)

    def suspend(self, request: Request, now: float) -> None:
        """It leaves the run set and keeps its KV blocks."""
        request.move(Move.SUSPEND)
        self._report_move(request, PlanEventType.SUSPENDED, now)

    def evicted(self, plan_id: str, now: float) -> None:
        """The engine has taken its KV blocks; a request that has ended meanwhile is nothing."""
        request = self.requests.get(plan_id)
        if request is not None and request.state in (State.RUNNING, State.SUSPENDED):
            request.move(Move.EVICT)
            cached = self.prefixes.cached(self.generating[plan_id].robot.prefix)
            request.uncached = request.prompt_tokens + request.tokens - cached
            self._report_move(request, PlanEventType.EVICTED, now)

    def _report_move(self, request: Request, kind: PlanEventType, now: float) -> None:
        if not self.observed:
            return
        started = kind is PlanEventType.STARTED
        cached = request.prompt_tokens - request.uncached if started else 0
        horizon = request.horizon.remaining(now)
        self.emit(request, kind, now, horizon=horizon, cached_tokens=cached)
        self.feedback(request, now)

    def wrote(
        self, request: Request, text: str, tokens: int, durations: Sequence[float], now: float
    ) -> None:
        """Steps that took ``durations`` s, the last until ``now``, gave it ``tokens`` more."""
        request.wrote(text, tokens, durations, now)
        self.views.touch(request.plan_id)

    # Its segments go to the robot.

    def send(
        self, request: Request, text: str, calls: Sequence[SkillCall], last: bool, now: float
    ) -> None:
        """Send the next segment of the plan to its robot, once. The first one takes the robot from
        whoever still has it."""
        if request.replaced is not None:
            old, request.replaced = request.replaced, None
            self.preempted(old, now)
        robot = self.generating[request.plan_id].robot
        index, first = len(request.segments), request.unsent
        replaces = first and (request.replaces or bool(request.attempts))
        command = SegmentCommand.REPLACE if replaces else SegmentCommand.RUN
        segment = Segment(
            robot.session, request.plan_id, index, command, text, tuple(calls), last, now
        )
        self.out.append(ev.SendSegment(robot.robot_id, segment))
        request.sent(text, calls, now, self.config.network)
        self.look_at(now + self.config.ack_timeout)
        self.emit(
            request,
            PlanEventType.SEGMENT,
            now,
            segment=index,
            text=text,
            last=last,
            tokens=request.segment_tokens,
            step_times=tuple(request.step_times),
        )
        self.feedback(request, now, text)
        self._segment_over(request, robot)

    def _segment_over(self, request: Request, robot: Robot) -> None:
        """Its length is learned, and the next one begins."""
        self.views.touch(request.plan_id)
        if request.segment_tokens and robot.lengths.observe(request.segment_tokens):
            generating = self.generating.items()
            self.views.touch_all(
                name for name, other in generating if other.robot.lengths is robot.lengths
            )
        request.segment_tokens = 0
        request.step_times.clear()

    def written(self, request: Request) -> None:
        """The plan is written to its end."""
        request.move(Move.FINISH)
        del self.generating[request.plan_id]
        self.views.drop(request.plan_id)

    def reached(self, robot: Robot, now: float) -> None:
        """What waited for the robot reaches it now: acknowledgements are waited for since now."""
        for request in self.requests_of(robot):
            if request.unacknowledged:
                request.unacknowledged = dict.fromkeys(request.unacknowledged, now)
                self.look_at(now + self.config.ack_timeout)

    # It ends.

    def _leave_engine(self, request: Request) -> None:
        """Nothing more of it is to be written."""
        if self.generating.pop(request.plan_id, None) is not None:
            self.views.drop(request.plan_id)
            self.engine.abort(request.plan_id)

    def stop(self, request: Request, code: ErrorCode, error: str, now: float) -> None:
        """Stop writing and, if anything was sent, the robot: it ends once that stands still."""
        if request.state in (State.STOPPING, State.ENDED):
            return
        self._leave_engine(request)
        robot = self.robot_of(request)
        if request.unsent or robot is None or not robot.alive:
            self.end(request, code, error, now)
            return
        request.stopping(code, error, now + self.config.stop_timeout)
        self.look_at(request.stop_deadline)
        self.command(robot, SegmentCommand.CANCEL, request.plan_id, now)
        self.feedback(request, now)

    def end(self, request: Request, code: ErrorCode, error: str, now: float) -> None:
        """End the request with a result; its robot turns to the next one."""
        if request.ended:
            return
        self._leave_engine(request)
        never_started = request.state is State.QUEUED
        request.move(Move.END)
        self.requests.pop(request.plan_id, None)
        result = request.result(code, error, now)
        kind = PlanEventType.REFUSED if never_started else PlanEventType.ENDED
        again = request.recomputed_tokens
        self.emit(request, kind, now, result=result, recomputed_tokens=again)
        self.out.append(ev.EndGoal(result))
        robot = self.robot_of(request)
        if robot is not None:
            self._release(robot, request, now)

    def end_stopped(self, request: Request, code: ErrorCode, error: str, now: float) -> None:
        """End the request with why it was being stopped if it was, else with this."""
        self.end(request, request.code or code, request.error or error, now)

    def end_all(
        self,
        robot: Robot,
        code: ErrorCode,
        error: str,
        now: float,
        *,
        cancel: Callable[[Request], bool] = lambda request: True,
    ) -> None:
        """End everything that was to run on the robot; plans that it has something of are cancelled
        there where ``cancel`` says so."""
        for request in list(robot.queue):
            self.end(request, code, error, now)
        for request in self.requests_of(robot):
            if request.segments and cancel(request):
                self.command(robot, SegmentCommand.CANCEL, request.plan_id, now)
            self.end_stopped(request, code, error, now)

    def _release(self, robot: Robot, request: Request, now: float) -> None:
        if request in robot.queue:
            robot.queue.remove(request)
            self._tell_places(robot, now)
            return
        if robot.current is not request:
            return
        old = request.replaced
        if old is not None and not old.ended and old.state is not State.STOPPING:
            robot.current = old  # its replacement came to nothing and never touched the robot
            return
        robot.current = None
        self.next(robot, now)

    def stop_robot(self, robot: Robot, now: float) -> None:
        """Halt and latch, whatever the robot does. Repeated until it is confirmed: stopping twice
        does no harm, but a stop that was lost does."""
        self.command(robot, SegmentCommand.STOP, NO_PLAN, now)
        robot.stopped, robot.stop_sent = True, now


def _prompt_parts(request: Request) -> str:
    """What a request's prompt is made of, besides its robot's fixed prompt."""
    goal = request.goal
    instruction = f"instruction ({len(goal.instruction)} characters)"
    scene = f"scene ({len(goal.scene)} characters)"
    if request.attempts:
        return f"{instruction}, {scene} and execution history"
    return f"{instruction} and {scene}"
