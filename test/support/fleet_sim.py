"""A planner and its robots on virtual time: a discrete-event loop around the real parts.

``FleetSim`` drives ``Planner`` on a ``SimulatedEngine`` and one ``RobotExecutor`` for each robot,
with a network delay between them. It does what the nodes do (queue events while the engine is busy,
carry out commands when its step is over, register robots, pass heartbeats) and nothing that they
decide. Everything that happens is logged with its time. No clock, no thread, no randomness.

The robots' bodies are stand-ins, ``TimedBody``: a call takes exactly its expected duration.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from sim_parts import PROMPTS, FaultyEngine, TimedBody, text_of, tokens_of, walker

from robot_adapters.executor.executor import RobotExecutor, Timing
from timely_llm import policies
from timely_llm.core import events as ev
from timely_llm.core.config import PlannerConfig
from timely_llm.core.planner import Planner
from timely_llm.core.robots import Fleet
from timely_llm.engine.simulated import SimulatedEngine
from timely_llm.estimation.step_time import StepLatency
from timely_llm.language.skills import SkillSet
from timely_llm.prompts.template import PromptTemplate
from timely_llm.protocols.engine import EngineRequest, Output
from timely_llm.protocols.messages import (
    ErrorCode,
    Execution,
    ExecutionState,
    PlanEvent,
    PlanFeedback,
    PlanGoal,
    PlanResult,
    RobotInfo,
    Segment,
    SegmentCommand,
)
from timely_llm.simulation.event_queue import EventQueue

STEP = StepLatency((0.02,), per_sequence=0.01, per_prefill_token=0.001, source="test")
NETWORK = 0.008  # s, one way (TimelyLLM, section 7.1)
STATUS_PERIOD = 0.5  # s, of the planner's heartbeat
REGISTER_AGAIN = 1.0  # s, after a refusal


@dataclass(slots=True)
class SimRobot:
    """A robot node. ``mute``: it sends nothing; ``deaf``: nothing reaches it."""

    robot_id: str
    kind: str
    executor: RobotExecutor
    body: TimedBody
    instance: str
    mute: bool = False
    deaf: bool = False
    alive: bool = True
    registering: bool = True
    session: int = 0
    refusals: list[tuple[ErrorCode, str]] = field(default_factory=list)
    wakes: int = 0  # numbers its appointments: only the latest holds


class FleetSim:
    """``plans`` gives the text (or the tokens) of a plan by instruction.

    ``lose(robot_id, message)`` says which ``Segment`` or ``Execution`` the network loses; ``fault``
    is ``FaultyEngine``'s.
    """

    def __init__(
        self,
        plans: Mapping[str, str | Sequence[str]],
        policy: str = "timely",
        *,
        kinds: Sequence[SkillSet] | None = None,
        config: PlannerConfig | None = None,
        latency: StepLatency = STEP,
        prior: StepLatency | None = None,
        network: float = NETWORK,
        prompts: PromptTemplate | None = None,
        fault: Callable[[int], Mapping[str, Output] | None] | None = None,
        **engine: object,
    ) -> None:
        self.now = 0.0
        self.plan_texts = dict(plans)
        options = {"block_size": 4, "count_tokens": len} | engine
        self.engine = SimulatedEngine(self._script, latency, **options)
        kinds = kinds or [walker()]
        sessions = itertools.count(1)
        self.planner = Planner(
            policies.get(policy),
            FaultyEngine(self.engine, fault) if fault else self.engine,
            prompts or PromptTemplate(PROMPTS),
            Fleet({kind.kind: kind for kind in kinds}, lambda: next(sessions)),
            config or PlannerConfig(network=network),
            prior or latency,
        )
        self.network = network
        self.lose: Callable[[str, Segment | Execution], bool] = lambda robot_id, message: False
        self.robots: dict[str, SimRobot] = {}
        self.log: list[tuple[float, object]] = []
        self.sent: list[tuple[float, str, Segment]] = []
        self.reported: list[tuple[float, str, Execution]] = []
        self.events: list[PlanEvent] = []
        self.feedback: list[tuple[float, PlanFeedback]] = []
        self.results: dict[str, PlanResult] = {}
        self.goals: dict[str, PlanGoal] = {}
        self.answers: dict[int, ev.Registered | ev.Answered] = {}
        self.busy: list[tuple[float, float]] = []  # steps of the engine: begin and end
        self._queue = EventQueue()
        self._inbox: list[tuple[float, ev.Event]] = []
        self._stepping = False
        self._appointment = 0  # of the planner's loop: only the latest holds
        self._tickets = itertools.count(1)
        self._registering: dict[int, SimRobot] = {}
        self._spins = 0
        self.at(0.0, self._status)

    # ---- what a test does ----------------------------------------------------------------------

    def at(self, time: float, action: Callable[[], None]) -> None:
        """Do ``action`` at ``time``; what is due at the same time goes in order of asking."""
        self._queue.at(max(time, self.now), self._act, action)

    def _act(self, time: float, action: Callable[[], None]) -> None:
        assert time >= self.now
        self._spins = 0 if time > self.now else self._spins + 1
        assert self._spins < 10_000, f"time stands still at {time}"
        self.now = time
        action()

    def tell(self, event: ev.Event, at: float | None = None) -> None:
        """The event reaches the planner at ``at`` (now)."""
        self.at(self.now if at is None else at, lambda: self._arrive(event))

    def goal(
        self, robot_id: str, instruction: str, at: float | None = None, **fields: object
    ) -> str:
        """A goal reaches the planner; its plan's id."""
        plan_id = f"{len(self.goals) + 1:032x}"
        goal = PlanGoal(robot_id, instruction, **fields)
        self.goals[plan_id] = goal
        self.tell(ev.GoalArrived(plan_id, goal), at)
        return plan_id

    def cancel(self, plan_id: str, at: float | None = None) -> None:
        self.tell(ev.GoalCanceled(plan_id), at)

    def ask(self, make: Callable[[int], ev.Event], at: float | None = None) -> int:
        """A request with a ticket, which ``answers`` holds the answer of."""
        ticket = next(self._tickets)
        self.tell(make(ticket), at)
        return ticket

    def add_robot(
        self,
        robot_id: str,
        kind: str = "walker",
        at: float = 0.0,
        values: Mapping[str, object] | None = None,
        faults: Mapping[str, str] | None = None,
        instance: str = "",
        timing: Timing | None = None,
    ) -> SimRobot:
        """Start a robot node; it registers at ``at``."""
        skills = self.planner.state.fleet.kinds[kind]
        body = TimedBody(skills, values or {}, faults or {})
        executor = RobotExecutor(body, timing or Timing())
        robot = SimRobot(robot_id, kind, executor, body, instance or f"{robot_id}-1")
        self.robots[robot_id] = robot
        self.at(at, lambda: self._register(robot))
        return robot

    def restart_robot(self, robot_id: str, at: float, instance: str = "") -> None:
        """Kill the robot's node and start it again: it knows nothing of what was."""

        def restart() -> None:
            old = self.robots[robot_id]
            old.alive = False
            name = instance or f"{old.instance}+"
            self.add_robot(
                robot_id, old.kind, self.now, old.body.values, old.body.faults, name
            ).body.done = old.body.done

        self.at(at, restart)

    def run(self, until: float) -> FleetSim:
        """Let everything happen that is due up to ``until``, in s."""
        self._queue.run(until)
        self.now = max(self.now, until)
        return self

    def finish(self, limit: float = 600.0, settle: float = 1.0) -> FleetSim:
        """Run until every goal has its result, then ``settle`` s more."""
        while self.goals.keys() - self.results:
            assert self.now < limit, f"goals without a result: {self.goals.keys() - self.results}"
            self.run(self.now + 0.25)
        return self.run(self.now + settle)

    # ---- what a test reads ---------------------------------------------------------------------

    def result(self, plan_id: str) -> PlanResult:
        return self.results[plan_id]

    def segments(self, plan_id: str) -> list[str]:
        """Texts sent of a plan, commands without text left out."""
        return [s.text for _, _, s in self.sent if s.plan_id == plan_id and is_text(s)]

    def story(self, *plan_ids: str, kinds: str = "") -> list[str]:
        """The plan's events: ``0.060 SEGMENT 0 'go(2)'``. ``kinds`` keeps some, by name."""
        keep = kinds.split()
        return [
            f"{event.stamp:.3f} {_event_text(event, plan_ids)}"
            for event in self.events
            if event.plan_id in plan_ids and (not keep or event.type.name in keep)
        ]

    def commands(self, robot_id: str) -> list[str]:
        """What was sent to a robot: ``0.060 RUN 0 'go(2)'``; ``!`` marks the last segment."""
        return [
            f"{time:.3f} {s.command.name}"
            + (f" {s.index} {s.text!r}{'!' if s.last else ''}" if is_text(s) else "")
            for time, robot, s in self.sent
            if robot == robot_id
        ]

    def reports(self, robot_id: str, *states: ExecutionState) -> list[str]:
        """What a robot reported: ``0.07 STARTED go(2)``."""
        return [
            f"{time:.3f} {e.state.name} {text_of(e.call) if e.call.name else ''}".rstrip()
            for time, robot, e in self.reported
            if robot == robot_id and (not states or e.state in states)
        ]

    def motions(self, robot_id: str) -> list[str]:
        """Calls that a robot began: ``0.070 go(2)``."""
        return [f"{time:.3f} {call}" for time, call in self.robots[robot_id].body.done]

    # ---- the planner's side --------------------------------------------------------------------

    def _script(self, request: EngineRequest) -> Sequence[str]:
        for instruction, plan in self.plan_texts.items():
            if request.user.endswith(instruction):
                return tokens_of(plan) if isinstance(plan, str) else plan
        raise AssertionError(f"no plan for {request.user!r}")

    def _arrive(self, event: ev.Event) -> None:
        self._inbox.append((self.now, event))
        if not self._stepping:
            self._turn()

    def _turn(self) -> None:
        """What the node's engine thread does: events first, then one turn of the loop."""
        self._appointment += 1
        inbox, self._inbox = self._inbox, []
        for received, event in inbox:
            self._carry_out(self.planner.handle(event, received))
        turn = self.planner.run_once(self.now)
        if turn.busy:
            self._stepping = True
            self.busy.append((self.now, self.now + turn.duration))
            self.at(self.now + turn.duration, lambda: self._step_over(turn.commands))
            return
        self._carry_out(turn.commands)
        if turn.wake_at is not None:
            appointment = self._appointment
            self.at(turn.wake_at, lambda: self._wake(appointment))

    def _step_over(self, commands: list[ev.Command]) -> None:
        self._stepping = False
        self._carry_out(commands)
        self._turn()

    def _wake(self, appointment: int) -> None:
        if appointment == self._appointment and not self._stepping:
            self._turn()

    def _carry_out(self, commands: list[ev.Command]) -> None:
        for command in commands:
            self.log.append((self.now, command))
            match command:
                case ev.SendSegment(robot_id, segment):
                    self.sent.append((self.now, robot_id, segment))
                    if not self.lose(robot_id, segment):
                        self.at(self.now + self.network, _bind(self._received, robot_id, segment))
                case ev.EmitEvent(event):
                    self.events.append(event)
                case ev.EmitFeedback(feedback):
                    self.feedback.append((self.now, feedback))
                case ev.EndGoal(result):
                    assert result.plan_id not in self.results, "a goal ended twice"
                    self.results[result.plan_id] = result
                case ev.Registered(ticket):
                    self.answers[ticket] = command
                    if ticket in self._registering:
                        robot = self._registering.pop(ticket)
                        self.at(self.now + self.network, _bind(self._registered, robot, command))
                case ev.Answered(ticket) | ev.Probed(ticket):
                    self.answers[ticket] = command
                case ev.RobotsChanged(robots):
                    self.at(self.now + self.network, _bind(self._listed, robots))

    def _listed(self, infos: Sequence[RobotInfo]) -> None:
        known = {info.robot_id: (info.session, info.alive) for info in infos}
        for robot in list(self.robots.values()):
            if robot.alive and not robot.deaf:
                said = known.get(robot.robot_id, (0, False))
                self._publish(robot, robot.executor.on_listed("planner", *said, self.now))

    def _status(self) -> None:
        for robot in list(self.robots.values()):
            if robot.alive and not robot.deaf:
                self._publish(robot, robot.executor.on_planner_heartbeat("planner", self.now))
        self.at(self.now + STATUS_PERIOD, self._status)

    # ---- the robots' side ----------------------------------------------------------------------

    def _register(self, robot: SimRobot) -> None:
        if not robot.alive:
            return
        if robot.mute or robot.deaf:  # the service cannot be reached
            self.at(self.now + REGISTER_AGAIN, _bind(self._register, robot))
            return
        ticket = next(self._tickets)
        self._registering[ticket] = robot
        self.tell(ev.RegisterRobot(ticket, robot.robot_id, robot.kind, instance=robot.instance))

    def _registered(self, robot: SimRobot, answer: ev.Registered) -> None:
        if answer.code is not ErrorCode.NONE:
            robot.refusals.append((answer.code, answer.error))
            self.at(self.now + REGISTER_AGAIN, _bind(self._register, robot))
        elif robot.alive:
            robot.session, robot.registering = answer.session, False
            self._publish(
                robot, robot.executor.new_session(answer.session, self.now, planner="planner")
            )

    def _received(self, robot_id: str, segment: Segment) -> None:
        """The node that has the id now gets it."""
        robot = self.robots.get(robot_id)
        if robot is not None and robot.alive and not robot.deaf:
            self._publish(robot, robot.executor.on_segment(segment, self.now))

    def _tick(self, robot: SimRobot, appointment: int) -> None:
        if robot.alive and appointment == robot.wakes:
            self._publish(robot, robot.executor.tick(self.now))

    def act(self, robot_id: str, at: float, action: Callable[..., list[Execution]]) -> None:
        """``action(executor, now)`` on the robot's own side, such as ``RobotExecutor.on_stop``."""
        robot = self.robots[robot_id]
        self.at(at, lambda: self._publish(robot, action(robot.executor, self.now)))

    def _publish(self, robot: SimRobot, reports: list[Execution]) -> None:
        for report in reports:
            self.reported.append((self.now, robot.robot_id, report))
            if not robot.mute and not self.lose(robot.robot_id, report):
                self.tell(ev.ExecutionArrived(robot.robot_id, report), self.now + self.network)
        if robot.executor.needs_registration and not robot.registering:
            robot.registering = True
            self.at(self.now + REGISTER_AGAIN, _bind(self._register, robot))
        wake = robot.executor.next_wake(self.now)
        robot.wakes += 1
        if wake is not None:
            self.at(wake, _bind(self._tick, robot, robot.wakes))


def is_text(segment: Segment) -> bool:
    return segment.command in (SegmentCommand.RUN, SegmentCommand.REPLACE)


def _event_text(event: PlanEvent, plan_ids: Sequence[str]) -> str:
    words = [event.type.name]
    if len(plan_ids) > 1:
        words.insert(0, f"p{int(event.plan_id, 16)}")
    if event.type.name == "SEGMENT":
        words.append(f"{event.segment} {event.text!r}{'!' if event.last else ''}")
    if event.result is not None and event.result.error_code:
        words.append(event.result.error_code.name)
    return " ".join(words)


def _bind(function: Callable[..., None], *arguments: object) -> Callable[[], None]:
    return lambda: function(*arguments)
