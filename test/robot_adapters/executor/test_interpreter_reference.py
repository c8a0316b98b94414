"""Plans run as a reference says that walks their trees, however their text streams in."""

from hypothesis import given
from hypothesis import strategies as st
from plan_language import CUTS, TELLO, plans, split
from plan_reference import Reference, answer

from robot_adapters.executor.interpreter import (
    Closed,
    Fault,
    Interpreter,
    NeedText,
    Opened,
    Replan,
    StartCall,
)
from timely_llm.language.skills import value_text


def shown(value):
    return (type(value), value)


@given(plans(), CUTS, st.lists(st.integers(0, 200), min_size=1, max_size=6), st.integers(0, 5))
def test_plans_run_like_the_reference_however_they_stream_in(plan, cuts, answers, ahead):
    tree, text = plan
    reference = Reference(answers)
    expected = reference.run(tree)
    pieces = split(text, cuts)
    interpreter, calls, fed = Interpreter(TELLO), [], 0
    while True:
        while fed < len(pieces) and fed <= ahead:
            interpreter.feed(pieces[fed], fed, fed == len(pieces) - 1)
            fed += 1
        assert interpreter.held_duration() >= 0
        step = interpreter.advance()
        if isinstance(step, StartCall):
            calls.append((step.call.name, step.call.evaluated))
            value = answer(TELLO[step.call.name].returns, answers, len(calls))
            text_value = TELLO[step.call.name].returns == "str"
            interpreter.complete(value_text(value) if text_value else value)
            ahead += calls[-1][0] == "mf"  # at times text comes while the robot moves
        elif isinstance(step, NeedText):
            ahead = fed
        elif not isinstance(step, Opened | Closed):
            break
    assert calls == reference.calls
    if isinstance(step, Fault):
        assert expected == ("fault",), step
        assert 0 <= step.position <= len(text)
    elif isinstance(step, Replan):
        assert expected == ("replan",)
    else:
        assert (expected[0], shown(expected[1])) == ("returned", shown(step.value))


def carried_out(pieces: list[str], answers: list[int]) -> tuple[list, object]:
    """The calls with their numbers, and how the run ends."""
    interpreter, calls, fed = Interpreter(TELLO), [], 0
    while True:
        step = interpreter.advance()
        if isinstance(step, StartCall):
            calls.append((step.call, step.number))
            interpreter.complete(answer(TELLO[step.call.name].returns, answers, len(calls)))
        elif isinstance(step, Opened | Closed):
            calls.append(step.value if isinstance(step, Closed) else step.call)
        elif isinstance(step, NeedText) and fed < len(pieces):
            interpreter.feed(pieces[fed], fed, fed == len(pieces) - 1)
            fed += 1
        else:
            return calls, step


@given(plans(), CUTS, st.lists(st.integers(0, 200), min_size=1, max_size=6))
def test_the_pieces_make_no_difference(plan, cuts, answers):
    text = plan[1]
    whole = carried_out([text], answers)
    assert not isinstance(whole[1], NeedText)
    assert carried_out(split(text, cuts), answers) == whole
    assert carried_out(list(text), answers) == whole
