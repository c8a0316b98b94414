"""Calls that were done, as the prompt of a replan tells of them."""

import pytest
from sim_parts import walker

from timely_llm.core.replans import as_written, done
from timely_llm.prompts.history import Done
from timely_llm.protocols.messages import Execution, ExecutionState, SkillCall


def report(name: str, *arguments: tuple[str, str], **fields) -> Execution:
    written, evaluated = zip(*arguments, strict=True) if arguments else ((), ())
    call = SkillCall(name, written, evaluated)
    return Execution(1, 0, "a" * 32, ExecutionState.SUCCEEDED, call=call, **fields)


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (report("go", ("_1", "0.5")), Done("go(0.5)")),
        (report("find", ("_1", "red cat"), has_value=True, value="True"),
         Done("find('red cat')", "True")),
        (report("rp"), Done("rp()")),
        (report("say", ("'a'", "a"), has_value=True, value="x" * 999),
         Done("say('a')", "x" * 200)),
    ],
)  # fmt: skip
def test_calls_are_told_as_a_plan_writes_them(told, expected):
    assert done(told, walker()) == expected


def test_a_call_that_no_skill_set_knows_is_told_as_it_is():
    assert as_written(SkillCall("fly", ("1",), ("1",)), walker()) == "fly(1)"
