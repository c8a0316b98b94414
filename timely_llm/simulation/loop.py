"""A trace replayed under one policy: discrete events around the real planner. No clock, no thread.

The planner, its policy and its detector are the node's; the engine's steps take what a model says,
and the robots do what the trace says. The same trace and setting give the same run, to the byte.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Mapping, Sequence

from timely_llm import policies
from timely_llm.core import events as ev
from timely_llm.core.goals import Limits, PlannerConfig
from timely_llm.core.planner import Planner
from timely_llm.core.request import Request
from timely_llm.core.robots import Fleet
from timely_llm.engine.simulated import SimulatedEngine
from timely_llm.estimation.plan_length import Predictor
from timely_llm.language.segmenter import Segmenter, TextKind
from timely_llm.language.skills import SkillSet
from timely_llm.protocols.engine import EngineRequest
from timely_llm.protocols.messages import Execution, PlanEvent, PlanGoal, PlanResult, Segment
from timely_llm.simulation.known_plans import KnownPlan, Playback, read
from timely_llm.simulation.outcomes import outcome_of
from timely_llm.simulation.robots import SimRobot
from timely_llm.simulation.setting import Run, Setting, UnknownKind, kind_of, noisy, oracle
from timely_llm.simulation.trace import Arrival, Task, Trace

__all__ = ["Replay", "Run", "Setting", "UnknownKind", "noisy", "oracle", "simulate"]


def simulate(trace: Trace, setting: Setting) -> Run:
    """Replay ``trace``. ``ValueError`` before anything runs if it is empty or a plan of it is not
    sound; ``UnknownPolicy`` for an unknown policy."""
    if not trace.arrivals:
        raise ValueError(f"trace {trace.name!r} has no arrivals")
    return Replay(trace, setting).run()


class _Prompts:
    """Prompts stand for themselves: their lengths come from the trace."""

    def system(self, skills: SkillSet | TextKind) -> str:
        return skills.kind

    def user(self, skills: SkillSet | TextKind, scene: str, instruction: str) -> str:
        return instruction


class Replay:
    """One replay. The heap holds what is to happen: (s, order, what, with what)."""

    def __init__(self, trace: Trace, setting: Setting) -> None:
        self.setting = setting
        self.arrivals = trace.arrivals
        predictor = setting.predictor and setting.predictor(trace)
        self.cut_at = max(a.at for a in trace.arrivals) + setting.cut
        self.kinds: dict[str, SkillSet | TextKind] = {}
        self.known = self._read_plans()  # of each arrival
        self.planner = self._planner(predictor)
        self.robots: dict[str, SimRobot] = {}
        self.plans: list[Request | None] = [None] * len(trace.arrivals)
        self.results: dict[int, PlanResult] = {}
        self.first_at: dict[int, float] = {}
        self.timeline: list[PlanEvent] = []
        self.steps, self.busy = 0, 0.0
        self.changed = False  # since the last decision, in the sense of ``decision_overhead``
        self.segmenting = 0.0  # s of ``plan_overhead`` that are still to be paid
        self.submitting = 0.0  # s of the engine's ``submit``, likewise
        self._heap: list[tuple] = []
        self._order = itertools.count()
        for i, arrival in enumerate(trace.arrivals):
            self._at(arrival.at, self._arrives, i, arrival)

    # What there is before the first arrival.

    def _read_plans(self) -> list[KnownPlan]:
        known: dict[tuple[str, tuple[str, ...]], KnownPlan] = {}
        plans = []
        skills = self.setting.skills or {}
        for arrival in self.arrivals:
            task = arrival.task
            if task.kind not in self.kinds:
                self.kinds[task.kind] = kind_of(task, skills)
            key = (task.kind, task.tokens)
            if key not in known:
                known[key] = read(task, self.kinds[task.kind])
            plans.append(known[key])
            _check_durations(arrival, known[key])
        return plans

    def _planner(self, predictor: Predictor | None) -> Planner:
        setting, model = self.setting, self.setting.engine
        tasks = {arrival.task for arrival in self.arrivals}
        longest = max(len(task.tokens) for task in tasks)
        whole = max(task.system_tokens + task.prompt_tokens for task in tasks) + longest
        system = {task.kind: task.system_tokens for task in tasks}
        engine = SimulatedEngine(
            self._script,
            model.latency,
            max_batch=setting.max_batch,
            kv_blocks=max(1, (setting.kv_tokens or model.kv_tokens) // model.block_size),
            block_size=model.block_size,
            max_model_len=whole,
            prefill_chunk=model.prefill_chunk,
            count_tokens=system.__getitem__,
            own_tokens=lambda request: self.arrivals[int(request.id)].task.prompt_tokens,
            end_token=False,
            model=model.name,
        )
        never = math.inf  # no report is lost, so silence means nothing
        config = PlannerConfig(
            limits=Limits(*[10**9] * 4),
            max_tokens=longest,
            network=setting.network,
            ack_timeout=never,
            heartbeat_timeout=never,
            first_report_timeout=never,
            overload="refuse" if setting.refusals else "late",
        )
        sessions = itertools.count(1)
        times = setting.times() if setting.times else None
        fleet = Fleet(self.kinds, lambda: next(sessions), times)
        policy = policies.get(setting.policy)
        planner = Planner(
            *(policy, engine, _Prompts(), fleet, config, model.latency),
            segmenter=self._segmenter,
            observed=setting.timeline,
            predictor=predictor,
        )
        self._compute_fixed_prompts(planner, system)
        return planner

    def _compute_fixed_prompts(self, planner: Planner, system: Mapping[str, int]) -> None:
        """They are in the cache before the first goal comes."""
        prefixes = planner.plans.prefixes
        for kind in (kind for kind, tokens in system.items() if tokens):
            prefixes.add(EngineRequest(prefix_of(kind), planner.plans.number(), kind, None))
        while prefixes.missing:
            planner.run_once(0.0)
        planner.steps, planner.busy = 0, 0.0

    def _script(self, request: EngineRequest) -> Sequence[str]:
        self.submitting += self.setting.engine.submit
        return self.arrivals[int(request.id)].task.tokens

    def _segmenter(self, kind: SkillSet | TextKind, plan_id: str) -> Segmenter:
        return Playback(self.known[int(plan_id)])

    # The replay.

    def run(self) -> Run:
        planner, now = self.planner, 0.0
        while True:
            self._happen(now)
            begin = now + self._overhead()
            turn = planner.run_once(begin, self._next_event())
            if turn.busy:
                now = turn.ended
            self._carry_out(turn.commands, now)
            if not turn.busy:
                wake = min(turn.wake_at or math.inf, self._heap[0][0] if self._heap else math.inf)
                now = max(now, wake)
            if now >= self.cut_at:
                break
        self._happen(self.cut_at)  # what reaches a robot during the last step
        self.steps, self.busy = planner.steps, planner.busy
        return self._result()

    def _next_event(self) -> float:
        """Until when steps may be taken together, in s."""
        if not self.setting.together:
            return -math.inf
        return min(self._heap[0][0], self.cut_at) if self._heap else self.cut_at

    def begin(self) -> None:
        """Let the goals come that are there from the beginning, without a turn of the loop."""
        self._happen(0.0)

    def _overhead(self) -> float:
        """What submitting, deciding and segmenting cost before this step, in s."""
        overhead, self.submitting = self.submitting, 0.0
        if not self.changed:
            return overhead
        self.changed = False
        if not self.planner.policy.native and self.planner.plans.writing:
            overhead += self.segmenting + self.setting.decision_overhead
        self.segmenting = 0.0
        return overhead

    def _at(self, time: float, what, *arguments) -> None:
        heapq.heappush(self._heap, (time, next(self._order), what, arguments))

    def _happen(self, until: float) -> None:
        """All that is due, in order of time; what is due at the same time, in order of asking."""
        heap = self._heap
        while heap and heap[0][0] <= until:
            time, _, what, arguments = heapq.heappop(heap)
            what(time, *arguments)

    def _carry_out(self, commands: Sequence[ev.Command], now: float) -> None:
        for command in commands:
            match command:
                case ev.SendSegment(robot_id, segment):
                    self._at(now + self.setting.network, self._delivered, robot_id, segment)
                    self._cut(segment)
                case ev.EndGoal(result):
                    self.results[int(result.plan_id)] = result
                case ev.EmitEvent(event):
                    self.timeline.append(event)

    def _cut(self, segment: Segment) -> None:
        """A segment has ended: a part of its plan's overhead is due, and a new decision."""
        self.changed = True
        count = sum(map(len, self.known[int(segment.plan_id)].cuts))
        self.segmenting += self.setting.plan_overhead / count

    def _arrives(self, now: float, number: int, arrival: Arrival) -> None:
        task = arrival.task
        if arrival.robot_id not in self.robots:
            self._add_robot(arrival.robot_id, task)
        goal = PlanGoal(
            arrival.robot_id,
            task.instruction or task.name,
            task.scene,
            task.urgency,
            task.utility,
            task.ttft,
            task.tpot,
        )
        self.changed = True
        commands = self.planner.handle(ev.GoalArrived(str(number), goal), now)
        self.plans[number] = self.planner.plans.live.get(str(number))
        self._carry_out(commands, now)

    def _add_robot(self, robot_id: str, task: Task) -> None:
        session = self._register(robot_id, task, task.kind, "")
        steady = self.setting.times is not None  # then each report is news
        self.robots[robot_id] = SimRobot(robot_id, session, steady)

    def _register(self, robot_id: str, task: Task, system: str, grammar: str) -> int:
        """Make the robot of a task known to the planner; its session."""
        robot = self.planner.plans.fleet.add(
            robot_id=robot_id,
            skills=self.kinds[task.kind],
            grammar=grammar,
            system=system,
            prefix=prefix_of(task.kind),
            namespace="",
            instance="",
            registered=0.0,
            last_heard=0.0,
            last_sequence=0,
        )
        return robot.session

    def _delivered(self, now: float, robot_id: str, segment: Segment) -> None:
        robot, number = self.robots[robot_id], int(segment.plan_id)
        if segment.index == 0:
            robot.take(segment.plan_id, self.known[number], self._durations(number))
            self.first_at[number] = now
        self._publish(robot, robot.receive(segment, now), now)

    def _durations(self, number: int) -> Sequence[float]:
        """Of the calls; as expected, where the trace does not say."""
        arrival = self.arrivals[number]
        if arrival.durations:
            return arrival.durations
        expected = dict.fromkeys(range(self.known[number].calls), 0.0)
        for action in self.known[number].actions:
            expected[action.index] = max(0.0, action.call.expected_duration)
        return tuple(expected.values())

    def _tick(self, now: float, robot: SimRobot, wake: float) -> None:
        if wake == robot.wake:  # else it has another appointment by now
            self._publish(robot, robot.tick(now), now)

    def _publish(self, robot: SimRobot, reports: Sequence[Execution], now: float) -> None:
        if reports:
            self._at(now + self.setting.network, self._reported, robot.robot_id, reports)
        if not math.isinf(robot.wake):
            self._at(robot.wake, self._tick, robot, robot.wake)

    def _reported(self, now: float, robot_id: str, reports: Sequence[Execution]) -> None:
        for report in reports:
            commands = self.planner.handle(ev.ExecutionArrived(robot_id, report), now)
            if commands:
                self._carry_out(commands, now)

    def _result(self) -> Run:
        outcomes = tuple(
            outcome_of(
                arrival,
                self.plans[i],
                self.results.get(i),
                self.first_at.get(i),
                self.cut_at,
            )
            for i, arrival in enumerate(self.arrivals)
        )
        return Run(outcomes, self.cut_at, self.steps, self.busy, tuple(self.timeline))


def prefix_of(kind: str) -> str:
    """The id of the request that holds a kind's fixed prompt."""
    return f"pin-{kind}"


def _check_durations(arrival: Arrival, plan: KnownPlan) -> None:
    given = arrival.durations
    if given and len(given) != plan.calls:
        raise ValueError(
            f"arrival at {arrival.at:g} s: {len(given)} durations for the {plan.calls} calls of "
            f"task {arrival.task.name!r}"
        )
    if any(not (math.isfinite(duration) and duration >= 0) for duration in given):
        raise ValueError(f"arrival at {arrival.at:g} s: a duration is negative or not finite")
