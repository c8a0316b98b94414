"""Questions to the model from inside running plans: a robot waits for each, so they run first."""

from __future__ import annotations

import math

from timely_llm.core import events as ev
from timely_llm.core.robots import Refused
from timely_llm.core.state import Plans, Probe
from timely_llm.prompts.template import TemplateError
from timely_llm.protocols.engine import EngineError, EngineRequest, Output
from timely_llm.protocols.messages import ErrorCode

MAX_QUESTION = 200  # characters
MAX_TOKENS = 24  # of an answer
# Printable characters, but no quotes or backslashes: an answer can stand in a plan as a string.
GRAMMAR = 'root ::= " "? [A-Za-z0-9] [A-Za-z0-9 _.,:+-]{0,59}\n'


def ask_probe(plans: Plans, event: ev.AskProbe, now: float) -> None:
    """Put the question to the model, or say why not."""
    try:
        _check(plans, event)
        robot = plans.fleet.find(event.robot_id)
        number = plans.number()
        user = plans.prompts.probe(robot.skills, event.scene, event.question)
        request = EngineRequest(f"probe-{number}", number, robot.system, user, GRAMMAR, MAX_TOKENS)
        tokens = plans.engine.submit(request)
    except Refused as refusal:
        plans.out.append(ev.Probed(event.ticket, refusal.code, refusal.error))
        return
    except TemplateError as error:
        plans.out.append(ev.Probed(event.ticket, ErrorCode.INVALID_GOAL, str(error)))
        return
    except EngineError as error:
        plans.out.append(ev.Probed(event.ticket, ErrorCode.ENGINE_FAILED, str(error)))
        return
    deadline = now + (event.timeout or plans.config.probe_timeout)
    uncached = tokens - plans.prefixes.cached(robot.prefix)
    plans.probes[request.id] = Probe(event.ticket, deadline, uncached)
    plans.look_at(deadline)


def _check(plans: Plans, event: ev.AskProbe) -> None:
    if not plans.active:
        raise Refused(ErrorCode.PLANNER_INACTIVE, "the planner is not active")
    robot = plans.fleet.find(event.robot_id)
    if event.session != robot.session:
        raise Refused(
            ErrorCode.INVALID_SESSION,
            f"session {event.session} of robot {event.robot_id!r} is over",
        )
    if not 0 < len(event.question) <= MAX_QUESTION:
        raise Refused(
            ErrorCode.INVALID_GOAL,
            f"question has {len(event.question)} characters: must have 1 to {MAX_QUESTION}",
        )
    if len(event.scene) > plans.config.limits.scene:
        raise Refused(
            ErrorCode.INVALID_GOAL,
            f"scene has {len(event.scene)} characters: at most {plans.config.limits.scene}",
        )
    if not math.isfinite(event.timeout) or event.timeout < 0:
        raise Refused(
            ErrorCode.INVALID_GOAL,
            f"timeout is {event.timeout} s: must be finite and at least 0 (0: the default)",
        )
    if not plans.prompts.has_probe:
        raise Refused(
            ErrorCode.INVALID_GOAL, f"{plans.prompts.source} has no block 'probe': nobody to ask"
        )


def written(plans: Plans, name: str, output: Output) -> None:
    """More of an answer; at its end, or at its longest, it goes to the robot."""
    probe = plans.probes[name]
    probe.text.append(output.text)
    probe.uncached = 0
    if output.finish == "error":
        _end(plans, name, ErrorCode.ENGINE_FAILED, output.error)
    elif output.finish is not None:
        del plans.probes[name]
        answer = "".join(probe.text).strip()
        plans.out.append(ev.Probed(probe.ticket, answer=answer))


def expire(plans: Plans, now: float) -> None:
    """End the questions whose robots wait no longer."""
    for name, probe in list(plans.probes.items()):
        if now >= probe.deadline:
            _end(plans, name, ErrorCode.TIMEOUT, "the model did not answer in time")
        else:
            plans.look_at(probe.deadline)


def end_all(plans: Plans, code: ErrorCode, error: str) -> None:
    """End all questions."""
    for name in tuple(plans.probes):
        _end(plans, name, code, error)


def _end(plans: Plans, name: str, code: ErrorCode, error: str) -> None:
    probe = plans.probes.pop(name)
    plans.engine.abort(name)
    plans.out.append(ev.Probed(probe.ticket, code, error))
