"""Questions to the model from inside running plans: a robot waits for each, so they run first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from timely_llm.core import events as ev
from timely_llm.core.robots import Refused, Robot
from timely_llm.core.state import PlannerState
from timely_llm.policies import Decision
from timely_llm.prompts.template import TemplateError
from timely_llm.protocols.engine import Output
from timely_llm.protocols.messages import LONGEST_TIME, ErrorCode

MAX_QUESTION = 200  # characters
MAX_TOKENS = 24  # of an answer
MOST_OPEN = 8  # questions of one robot
# Printable characters, but no quotes or backslashes: an answer can stand in a plan as a string.
GRAMMAR = 'root ::= " "? [A-Za-z0-9] [A-Za-z0-9 _.,:+-]{0,59}\n'


@dataclass(slots=True)
class Probe:
    """A robot's question to the model: who asked, until when (s) it is of use, what is written."""

    ticket: int
    robot_id: str
    deadline: float
    uncached: int  # prompt tokens that the engine has yet to compute
    text: list[str] = field(default_factory=list)


class Probes:
    """The questions that are open, by the id of their request to the engine."""

    def __init__(self, state: PlannerState) -> None:
        self._state = state
        self._open: dict[str, Probe] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._open

    def __iter__(self) -> Iterator[str]:
        return iter(self._open)

    def __len__(self) -> int:
        return len(self._open)

    def ask(self, event: ev.AskProbe, now: float) -> None:
        """Put the question to the model, or say why not."""
        state = self._state
        try:
            robot = self._check(event)
            number = state.number()
            user = state.prompts.probe(robot.skills, event.scene, event.question)
            request = robot.fixed.request(
                f"probe-{number}", number, user, MAX_TOKENS, grammar=GRAMMAR
            )
            tokens = state.engine.submit(request)
        except Refused as refusal:
            state.out.append(ev.Probed(event.ticket, refusal.code, refusal.error))
            return
        except TemplateError as error:
            state.out.append(ev.Probed(event.ticket, ErrorCode.INVALID_GOAL, str(error)))
            return
        except Exception as error:  # the engine's, or one that nobody thought of
            state.out.append(ev.Probed(event.ticket, ErrorCode.ENGINE_FAILED, str(error)))
            return
        deadline = now + (event.timeout or state.config.probe_timeout)
        uncached = tokens - state.prefixes.cached(robot.prefix)
        self._open[request.id] = Probe(event.ticket, robot.robot_id, deadline, uncached)
        state.look_at(deadline)

    def _check(self, event: ev.AskProbe) -> Robot:
        """The robot that asks; ``Refused`` with what is wrong."""
        state = self._state
        if not state.active:
            raise Refused(ErrorCode.PLANNER_INACTIVE, "the planner is not active")
        robot = state.fleet.find(event.robot_id)
        if event.session != robot.session:
            words = f"session {event.session} of robot {event.robot_id!r} is over"
            raise Refused(ErrorCode.INVALID_SESSION, words)
        question, scene, timeout = len(event.question), len(event.scene), event.timeout
        words = ""
        if not 0 < question <= MAX_QUESTION:
            words = f"question has {question} characters: must have 1 to {MAX_QUESTION}"
        elif scene > state.config.limits.scene:
            words = f"scene has {scene} characters: at most {state.config.limits.scene}"
        elif not 0.0 <= timeout <= LONGEST_TIME:
            words = f"timeout is {timeout} s: must be 0 to {LONGEST_TIME:g} s (0: the default)"
        elif not state.prompts.has_probe:
            words = f"{state.prompts.source} has no block 'probe': nobody to ask"
        if words:
            raise Refused(ErrorCode.INVALID_GOAL, words)
        if sum(probe.robot_id == robot.robot_id for probe in self._open.values()) >= MOST_OPEN:
            words = (
                f"{MOST_OPEN} questions of robot {robot.robot_id!r} are open: at most {MOST_OPEN}"
            )
            raise Refused(ErrorCode.ROBOT_BUSY, words)
        return robot

    def before(self, decision: Decision) -> Decision:
        """The policy's choice with all questions before it: each of those robots stands still until
        it is answered."""
        if not self._open:
            return decision
        budget = decision.prefill_budget
        if budget is not None:
            budget += sum(probe.uncached for probe in self._open.values())
        return replace(decision, run=(*self._open, *decision.run), prefill_budget=budget)

    def wrote(self, name: str, output: Output) -> None:
        """More of an answer; at its end, or at its longest, it goes to the robot."""
        probe = self._open[name]
        probe.text.append(output.text)
        probe.uncached = 0
        if output.finish == "error":
            self._end(name, ErrorCode.ENGINE_FAILED, output.error)
        elif output.finish is not None:
            del self._open[name]
            answer = "".join(probe.text).strip()
            self._state.out.append(ev.Probed(probe.ticket, answer=answer))

    def expire(self, now: float) -> None:
        """End the questions whose robots wait no longer."""
        for name, probe in list(self._open.items()):
            if now >= probe.deadline:
                self._end(name, ErrorCode.TIMEOUT, "the model did not answer in time")
            else:
                self._state.look_at(probe.deadline)

    def end_all(self, code: ErrorCode, error: str) -> None:
        """End all questions."""
        for name in tuple(self._open):
            self._end(name, code, error)

    def _end(self, name: str, code: ErrorCode, error: str) -> None:
        probe = self._open.pop(name)
        self._state.engine.abort(name)
        self._state.out.append(ev.Probed(probe.ticket, code, error))
