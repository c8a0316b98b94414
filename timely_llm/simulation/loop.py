"""A trace replayed under one policy: discrete events around the real planner. No clock, no thread.

A ``Replay`` is put together of three parts: what comes (goals), who executes (robots), and what
turns the planner's loop (a driver). Here are those of the simulator, whose engine's steps take what
a model says and whose robots do what the trace says: the same trace and setting give the same run,
to the byte. A recording has other goals and robots, and an engine that computes another driver.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from timely_llm import policies
from timely_llm.core import events as ev
from timely_llm.core.config import Limits, PlannerConfig
from timely_llm.core.planner import Planner, Turn
from timely_llm.core.request import Request
from timely_llm.core.robots import Fleet
from timely_llm.engine.simulated import SimulatedEngine
from timely_llm.estimation.plan_length import Predictor
from timely_llm.estimation.step_time import Latency, StepTimes
from timely_llm.language.segmenter import Segmenter
from timely_llm.language.skills import SkillSet
from timely_llm.prompts.fixed import FixedPrompt
from timely_llm.prompts.template import PromptTemplate
from timely_llm.protocols.engine import EngineRequest
from timely_llm.protocols.messages import (
    Execution,
    PlanEvent,
    PlanGoal,
    PlanResult,
    Segment,
    SegmentCommand,
)
from timely_llm.simulation.event_queue import EventQueue
from timely_llm.simulation.fast_forward import FastForward
from timely_llm.simulation.known_plans import KnownPlan, Playback, read
from timely_llm.simulation.outcomes import Outcome, outcome_of
from timely_llm.simulation.robots import SimRobot
from timely_llm.simulation.setting import Run, Setting, UnknownKind, kind_of, noisy, oracle
from timely_llm.simulation.trace import Arrival, Task, Trace

__all__ = ["Replay", "Run", "Setting", "UnknownKind", "noisy", "oracle", "simulate"]

Kinds = dict[str, SkillSet]
NEVER = math.inf  # no report is lost, so silence means nothing


class GoalSource(Protocol):
    """What comes, and what is said of it in the end."""

    @property
    def arrivals(self) -> Sequence[Arrival]: ...

    def goal(self, number: int) -> PlanGoal:
        """What the arrival of this number asks for."""

    def ends_at(self, number: int) -> float | None:
        """When it is ended from outside, in s; None: never."""

    def outcome(
        self,
        number: int,
        request: Request | None,
        result: PlanResult | None,
        first_at: float | None,
        cut_at: float,
    ) -> Outcome:
        """Of the ``request`` as it was left, its ``result`` if it ended, and when its first segment
        was at the robot, in s."""


class RobotModel(Protocol):
    """How robots take segments."""

    def deliver(self, robot: SimRobot, segment: Segment, now: float) -> Sequence[Execution]:
        """The robot gets the segment: its reports."""


class Driver(Protocol):
    """Turns the loop of a planner. Times in s, of the workload."""

    @property
    def planner(self) -> Planner: ...

    def register(self, robot_id: str, task: Task) -> int:
        """Make the robot of a task known to the planner; its session."""

    def handle(self, event: ev.Event, now: float) -> list[ev.Command]:
        """As ``Planner.handle``."""

    def sent(self, segment: Segment) -> None:
        """A segment goes to its robot."""

    def turn(self, now: float, until: float) -> Turn:
        """One turn of the loop; nothing comes before ``until``. ``ended`` is the time after it."""


class Replay:
    """One replay. It ends at ``cut_at``; messages take ``network`` one way (s). With ``timeline``
    the planner's events and the robots' reports are kept; ``steady``: see ``SimRobot``."""

    def __init__(
        self,
        driver: Driver,
        goals: GoalSource,
        robots: RobotModel,
        *,
        cut_at: float,
        network: float,
        steady: bool = False,
    ) -> None:
        self.driver, self.goals = driver, goals
        self.cut_at = cut_at
        self.first_at: dict[int, float] = {}
        self.timeline: list[PlanEvent] = []
        self.reports: list[Execution] = []
        self._network, self._steady = network, steady
        self._model = robots
        self._robots: dict[str, SimRobot] = {}
        self._requests: dict[int, Request] = {}
        self._results: dict[int, PlanResult] = {}
        self._queue = EventQueue()
        for number, arrival in enumerate(goals.arrivals):
            self._queue.at(arrival.at, self._arrives, number)

    @property
    def planner(self) -> Planner:
        return self.driver.planner

    def run(self) -> Run:
        """Let everything happen up to the cut."""
        now = 0.0
        while True:
            self._queue.run(now)
            turn = self.driver.turn(now, min(self._queue.next_at, self.cut_at))
            now = turn.ended
            self._carry_out(turn.commands, now)
            if not turn.busy:
                now = max(now, min(turn.wake_at or math.inf, self._queue.next_at))
            if now >= self.cut_at:
                break
        self._queue.run(self.cut_at)  # what reaches a robot during the last step
        outcomes = tuple(self._outcome(number) for number in range(len(self.goals.arrivals)))
        planner = self.planner
        return Run(outcomes, self.cut_at, planner.steps, planner.busy, tuple(self.timeline))

    def begin(self) -> None:
        """Let the goals come that are there from the beginning, without a turn of the loop."""
        self._queue.run(0.0)

    def _outcome(self, number: int) -> Outcome:
        request, result = self._requests.get(number), self._results.get(number)
        first_at = self.first_at.get(number)
        return self.goals.outcome(number, request, result, first_at, self.cut_at)

    def _arrives(self, now: float, number: int) -> None:
        arrival = self.goals.arrivals[number]
        if arrival.robot_id not in self._robots:
            session = self.driver.register(arrival.robot_id, arrival.task)
            self._robots[arrival.robot_id] = SimRobot(arrival.robot_id, session, self._steady)
        event = ev.GoalArrived(str(number), self.goals.goal(number))
        commands = self.driver.handle(event, now)
        request = self.planner.state.requests.get(str(number))
        if request is not None:
            self._requests[number] = request
        self._carry_out(commands, now)
        ends_at = self.goals.ends_at(number)
        if ends_at is not None:
            self._queue.at(max(now, ends_at), self._ended_from_outside, number)

    def _ended_from_outside(self, now: float, number: int) -> None:
        if number not in self._results:
            self._carry_out(self.driver.handle(ev.GoalCanceled(str(number)), now), now)

    def _carry_out(self, commands: Sequence[ev.Command], now: float) -> None:
        for command in commands:
            match command:
                case ev.SendSegment(robot_id, segment):
                    self._queue.at(now + self._network, self._delivered, robot_id, segment)
                    self.driver.sent(segment)
                case ev.EndGoal(result):
                    self._results[int(result.plan_id)] = result
                case ev.EmitEvent(event):
                    self.timeline.append(event)

    def _delivered(self, now: float, robot_id: str, segment: Segment) -> None:
        robot = self._robots[robot_id]
        if segment.index == 0 and segment.command in (SegmentCommand.RUN, SegmentCommand.REPLACE):
            self.first_at[int(segment.plan_id)] = now
        self._publish(robot, self._model.deliver(robot, segment, now), now)

    def _tick(self, now: float, robot: SimRobot, wake: float) -> None:
        if wake == robot.wake:  # else it has another appointment by now
            self._publish(robot, robot.tick(now), now)

    def _publish(self, robot: SimRobot, reports: Sequence[Execution], now: float) -> None:
        if reports:
            self._queue.at(now + self._network, self._reported, robot.robot_id, reports)
        if not math.isinf(robot.wake):
            self._queue.at(robot.wake, self._tick, robot, robot.wake)

    def _reported(self, now: float, robot_id: str, reports: Sequence[Execution]) -> None:
        if self.planner.state.observed:
            self.reports.extend(reports)
        for report in reports:
            commands = self.driver.handle(ev.ExecutionArrived(robot_id, report), now)
            if commands:
                self._carry_out(commands, now)


# The simulator's parts.


class TraceGoals:
    """The goals of a trace."""

    def __init__(self, arrivals: Sequence[Arrival]) -> None:
        self.arrivals = arrivals

    def goal(self, number: int) -> PlanGoal:
        arrival = self.arrivals[number]
        task = arrival.task
        return PlanGoal(
            arrival.robot_id,
            task.instruction or task.name,
            task.scene,
            task.urgency,
            task.utility,
            task.ttft,
            task.tpot,
            task.time_budget,
        )

    def ends_at(self, number: int) -> float | None:
        return None

    def outcome(
        self,
        number: int,
        request: Request | None,
        result: PlanResult | None,
        first_at: float | None,
        cut_at: float,
    ) -> Outcome:
        return outcome_of(self.arrivals[number], request, result, first_at, cut_at)


class KnownRobots:
    """Robots that do plans known beforehand, each call as long as the trace says."""

    def __init__(self, arrivals: Sequence[Arrival], known: Sequence[KnownPlan]) -> None:
        self._arrivals, self._known = arrivals, known

    def deliver(self, robot: SimRobot, segment: Segment, now: float) -> Sequence[Execution]:
        if segment.index == 0:
            number = int(segment.plan_id)
            robot.take(segment.plan_id, self._known[number], self._durations(number))
        return robot.receive(segment, now)

    def _durations(self, number: int) -> Sequence[float]:
        """Of the calls; as expected, where the trace does not say."""
        arrival, plan = self._arrivals[number], self._known[number]
        if arrival.durations:
            return arrival.durations
        expected = dict.fromkeys(range(plan.calls), 0.0)
        for action in plan.actions:
            expected[action.index] = max(0.0, action.call.expected_duration)
        return tuple(expected.values())


#: Prompts stand for themselves: their lengths come from the trace.
PROMPTS = PromptTemplate(
    "{% block system %}{{ skills.kind }}{% endblock %}"
    "{% block user %}{{ instruction }}{% endblock %}"
)


class SimulatedDriver:
    """The planner on a simulated engine. ``known`` are the plans of the arrivals. Where the planner
    was set otherwise than the simulation goes, ``network`` (s) and ``prior`` say how it takes the
    network and the engine's steps. ``latency`` replaces the times of the setting's engine;
    ``on_turn`` is called with the time before each turn."""

    def __init__(
        self,
        arrivals: Sequence[Arrival],
        kinds: Kinds,
        known: Sequence[KnownPlan],
        setting: Setting,
        predictor: Predictor | None = None,
        *,
        network: float | None = None,
        prior: Latency | None = None,
        latency: StepTimes | None = None,
        on_turn: Callable[[float], None] = lambda now: None,
    ) -> None:
        self._arrivals, self._kinds, self._known = arrivals, kinds, known
        self._setting, self._on_turn = setting, on_turn
        self._playbacks: dict[str, Playback] = {}
        self._changed = False  # since the last decision, in the sense of ``decision_overhead``
        self._segmenting = 0.0  # s of ``plan_overhead`` that are still to be paid
        self._submitting = 0.0  # s of the engine's ``submit``, likewise
        tasks = {arrival.task for arrival in arrivals}
        engine = self._engine(tasks, latency or setting.engine.latency)
        self.planner = self._planner(
            engine,
            max(len(task.tokens) for task in tasks),
            setting.network if network is None else network,
            prior or setting.engine.latency,
            predictor,
        )
        self._compute_fixed_prompts({task.kind: task.system_tokens for task in tasks})
        self._fast_forward = FastForward(self.planner, engine, self._playbacks)

    def _engine(self, tasks: set[Task], latency: StepTimes) -> SimulatedEngine:
        setting, model = self._setting, self._setting.engine
        longest = max(len(task.tokens) for task in tasks)
        whole = max(task.system_tokens + task.prompt_tokens for task in tasks) + longest
        system = {task.kind: task.system_tokens for task in tasks}
        return SimulatedEngine(
            self._script,
            latency,
            max_batch=setting.max_batch,
            kv_blocks=max(1, (setting.kv_tokens or model.kv_tokens) // model.block_size),
            block_size=model.block_size,
            max_model_len=whole,
            prefill_chunk=model.prefill_chunk,
            count_tokens=system.__getitem__,
            own_tokens=lambda request: self._arrivals[int(request.id)].task.prompt_tokens,
            end_token=False,
            model=model.name,
        )

    def _planner(
        self,
        engine: SimulatedEngine,
        max_tokens: int,
        network: float,
        prior: Latency,
        predictor: Predictor | None,
    ) -> Planner:
        setting = self._setting
        times = setting.times() if setting.times else None
        return Planner(
            policies.get(setting.policy),
            engine,
            PROMPTS,
            Fleet(self._kinds, itertools.count(1).__next__, times),
            replace(endless_patience(setting), max_tokens=max_tokens, network=network),
            prior,
            predictor=predictor,
            segmenter=self._playback,
            observed=setting.timeline,
        )

    def _compute_fixed_prompts(self, system: Mapping[str, int]) -> None:
        """They are in the cache before the first goal comes; the planner learns nothing of that."""
        planner, state = self.planner, self.planner.state
        for kind in (kind for kind, tokens in system.items() if tokens):
            state.prefixes.add(EngineRequest(prefix_of(kind), state.number(), kind, None))
        while missing := state.prefixes.missing:
            planner.last_step = planner.engine.step(missing)
            for name in planner.last_step.outputs:
                state.prefixes.settle(name, True)

    def _script(self, request: EngineRequest) -> Sequence[str]:
        self._submitting += self._setting.engine.submit
        return self._arrivals[int(request.id)].task.tokens

    def _playback(self, kind: SkillSet, plan_id: str) -> Segmenter:
        found = self._playbacks[plan_id] = Playback(self._known[int(plan_id)])
        return found

    def register(self, robot_id: str, task: Task) -> int:
        return register(self.planner, robot_id, self._kinds[task.kind], FixedPrompt(task.kind))

    def handle(self, event: ev.Event, now: float) -> list[ev.Command]:
        if isinstance(event, ev.GoalArrived):
            self._changed = True
        return self.planner.handle(event, now)

    def sent(self, segment: Segment) -> None:
        """A segment has ended: a part of its plan's overhead is due, and a new decision."""
        self._changed = True
        count = sum(map(len, self._known[int(segment.plan_id)].cuts))
        self._segmenting += self._setting.plan_overhead / count

    def turn(self, now: float, until: float) -> Turn:
        self._on_turn(now)
        begin = now + self._overhead()
        if self._setting.together:
            turn = self._fast_forward.turn(begin, until)
        else:
            turn = self.planner.run_once(begin)
        return turn if turn.busy else replace(turn, ended=now)

    def _overhead(self) -> float:
        """What submitting, deciding and segmenting cost before this step, in s."""
        overhead, self._submitting = self._submitting, 0.0
        if not self._changed:
            return overhead
        self._changed = False
        if not self.planner.policy.native and self.planner.state.generating:
            overhead += self._segmenting + self._setting.decision_overhead
        self._segmenting = 0.0
        return overhead


def simulate(trace: Trace, setting: Setting) -> Run:
    """Replay ``trace``. ``ValueError`` before anything runs if it is empty or a plan of it is not
    sound; ``UnknownPolicy`` for an unknown policy."""
    return simulated(trace, setting).run()


def simulated(trace: Trace, setting: Setting) -> Replay:
    """The simulator's replay of ``trace``; raises as ``simulate``."""
    if not trace.arrivals:
        raise ValueError(f"trace {trace.name!r} has no arrivals")
    arrivals = trace.arrivals
    predictor = setting.predictor(trace) if setting.predictor else None
    kinds = kinds_of(arrivals, setting)
    known = _read_plans(arrivals, kinds)
    driver = SimulatedDriver(arrivals, kinds, known, setting, predictor)
    return Replay(
        driver,
        TraceGoals(arrivals),
        KnownRobots(arrivals, known),
        cut_at=end_of(arrivals, setting),
        network=setting.network,
        steady=setting.times is not None,  # then each report is news
    )


# What every driver needs.


def end_of(arrivals: Sequence[Arrival], setting: Setting) -> float:
    """When a replay is cut, in s."""
    return max(arrival.at for arrival in arrivals) + setting.cut


def kinds_of(arrivals: Sequence[Arrival], setting: Setting) -> Kinds:
    """The kinds of robots by name. ``UnknownKind`` for one without a skill set."""
    kinds: Kinds = {}
    for arrival in arrivals:
        if arrival.task.kind not in kinds:
            kinds[arrival.task.kind] = kind_of(arrival.task, setting.skills or {})
    return kinds


def endless_patience(setting: Setting) -> PlannerConfig:
    """A planner's settings where every goal is taken and no silence means anything."""
    return PlannerConfig(
        limits=Limits(*[10**9] * 4),
        network=setting.network,
        ack_timeout=NEVER,
        heartbeat_timeout=NEVER,
        first_report_timeout=NEVER,
        overload="refuse" if setting.refusals else "late",
    )


def register(planner: Planner, robot_id: str, kind: SkillSet, fixed: FixedPrompt) -> int:
    """Make a robot known to the planner, as one that has reported already; its session."""
    robot = planner.state.fleet.add(
        robot_id=robot_id,
        skills=kind,
        fixed=fixed,
        prefix=prefix_of(kind.kind),
        namespace="",
        instance="",
        registered=0.0,
        last_heard=0.0,
        last_sequence=0,
    )
    return robot.session


def prefix_of(kind: str) -> str:
    """The id of the request that holds a kind's fixed prompt."""
    return f"pin-{kind}"


def _read_plans(arrivals: Sequence[Arrival], kinds: Kinds) -> list[KnownPlan]:
    known: dict[tuple[str, tuple[str, ...]], KnownPlan] = {}
    plans = []
    for arrival in arrivals:
        task = arrival.task
        key = (task.kind, task.tokens)
        if key not in known:
            known[key] = read(task, kinds[task.kind])
        plans.append(known[key])
        _check_durations(arrival, known[key])
    return plans


def _check_durations(arrival: Arrival, plan: KnownPlan) -> None:
    given = arrival.durations
    if given and len(given) != plan.calls:
        raise ValueError(
            f"arrival at {arrival.at:g} s: {len(given)} durations for the {plan.calls} calls of "
            f"task {arrival.task.name!r}"
        )
    if any(not (math.isfinite(duration) and duration >= 0) for duration in given):
        raise ValueError(f"arrival at {arrival.at:g} s: a duration is negative or not finite")
