"""For tests: a plan is run, call by call, as a log of what the robot is told. No tests here."""

from plan_language import TELLO

from robot_adapters.executor.interpreter import Closed, Interpreter, NeedText, Opened, StartCall


def run(plan, skills=TELLO, answers=None, ahead: int = 0) -> list:
    """Names and evaluated arguments of the calls, a "dry" for each wait, and the outcome.

    ``plan`` is a text or a list of segments, ``answers`` maps ``name(arguments)`` or a name to what
    the robot returns; ``ahead`` segments are there before the robot begins.
    """
    segments = [plan] if isinstance(plan, str) else list(plan)
    interpreter, log, fed = Interpreter(skills), [], 0
    answers = {"iv": True, "s": True, "sc": True} | (answers or {})
    while True:
        if fed < min(ahead + 1, len(segments)):
            interpreter.feed(segments[fed], fed, fed == len(segments) - 1)
            fed += 1
            continue
        match interpreter.advance():
            case StartCall(call, segment, number):
                assert number == sum("(" in entry for entry in log if isinstance(entry, str))
                assert segment < fed
                log.append(f"{call.name}({','.join(call.evaluated)})")
                value = answers.get(log[-1], answers.get(call.name))
                interpreter.complete(value.pop(0) if isinstance(value, list) else value)
            case Opened() | Closed():
                pass
            case NeedText():
                assert fed < len(segments)
                log.append("dry")
                ahead = fed
            case over:
                assert interpreter.advance() is over
                return [*log, over]
