"""Plain values to ROS messages and back, through the wire format; and what is refused."""

from __future__ import annotations

import dataclasses
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rclpy.serialization import deserialize_message, serialize_message

from timely_llm.action import Plan
from timely_llm.msg import Execution, PlanEvent, PlannerStatus, Segment, SkillCall
from timely_llm.msg import TimeUtility as RosTimeUtility
from timely_llm.protocols import messages as values
from timely_llm.protocols.messages import PlanEventType
from timely_llm.protocols.utility import TimeUtility, Urgency
from timely_llm.ros import conversions as conv
from timely_llm.srv import Probe, RegisterRobot

IDS = st.binary(min_size=16, max_size=16).map(bytes.hex)
TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=40)
NUMBERS = st.floats(-values.LONGEST_TIME, values.LONGEST_TIME)
COUNTS = st.integers(0, 2**32 - 1)
LONG = st.integers(0, 2**64 - 1)
#: s; multiples of 2^-9 are exact both in nanoseconds and in a float.
TIMES = st.integers(0, 2**40 - 1).map(lambda ticks: ticks / 512)
UTILITIES = st.none() | st.builds(
    TimeUtility, st.floats(0, 1e6), st.floats(-1e6, 0), st.floats(1e-6, 1e6)
)
CALLS = st.builds(
    values.SkillCall,
    TEXTS,
    st.lists(TEXTS, max_size=3).map(tuple),
    st.lists(TEXTS, max_size=3).map(tuple),
    NUMBERS,
)
GOALS = st.builds(
    values.PlanGoal,
    robot_id=TEXTS, instruction=TEXTS, scene=TEXTS, urgency=st.sampled_from(Urgency),
    utility=UTILITIES, ttft=NUMBERS, tpot=NUMBERS, time_budget=NUMBERS,
    when_busy=st.sampled_from(values.WhenBusy), on_failure=st.sampled_from(values.OnFailure),
    max_replans=COUNTS,
)  # fmt: skip
RESULTS = st.builds(
    values.PlanResult,
    plan_id=IDS, error_code=st.sampled_from(values.ErrorCode), error_msg=TEXTS, plan=TEXTS,
    value=TEXTS, num_segments=COUNTS, response_time=NUMBERS, waiting_time=NUMBERS,
    execution_time=NUMBERS, utility=NUMBERS, prompt_tokens=COUNTS, generated_tokens=COUNTS,
    replans=COUNTS,
)  # fmt: skip
VALUES = {
    "SkillCall": CALLS,
    "Segment": st.builds(
        values.Segment,
        session=LONG, plan_id=IDS, index=COUNTS, command=st.sampled_from(values.SegmentCommand),
        text=TEXTS, calls=st.lists(CALLS, max_size=3).map(tuple), last=st.booleans(), stamp=TIMES,
    ),
    "Execution": st.builds(
        values.Execution,
        session=LONG, sequence=LONG, plan_id=IDS, state=st.sampled_from(values.ExecutionState),
        segment=COUNTS, call=CALLS, call_number=COUNTS, elapsed=NUMBERS, skill_remaining=NUMBERS,
        total_remaining=NUMBERS, has_value=st.booleans(), value=TEXTS, error=TEXTS, stamp=TIMES,
    ),
    "PlanGoal": GOALS,
    "PlanResult": RESULTS,
    "PlanFeedback": st.builds(
        values.PlanFeedback,
        plan_id=IDS, state=st.sampled_from(values.FeedbackState), queue_position=COUNTS,
        segment=COUNTS, text=TEXTS, estimated_time_remaining=NUMBERS,
    ),
    "RobotInfo": st.builds(
        values.RobotInfo,
        robot_id=TEXTS, kind=TEXTS, robot_namespace=TEXTS, session=LONG, skill_set=TEXTS,
        alive=st.booleans(), stopped=st.booleans(), registered=TIMES,
    ),
    "PlannerStatus": st.builds(
        values.PlannerStatus,
        instance=IDS, policy=TEXTS, model=TEXTS, engine=TEXTS, pace=TEXTS, robots=COUNTS,
        waiting=COUNTS, running=COUNTS, suspended=COUNTS, executing=COUNTS, kv_blocks_used=COUNTS,
        kv_blocks_total=COUNTS, step_time=NUMBERS, overhead=NUMBERS, prompt_tokens_recomputed=LONG,
        stamp=TIMES,
    ),
}  # fmt: skip


def through_the_wire(message):
    return deserialize_message(serialize_message(message), type(message))


@pytest.mark.parametrize("name", VALUES)
def test_a_value_comes_back_as_it_was(name: str) -> None:
    @settings(max_examples=60, deadline=None)
    @given(VALUES[name])
    def check(value) -> None:
        assert conv.from_ros(through_the_wire(conv.to_ros(value))) == value

    check()


def test_every_plain_message_has_its_conversion() -> None:
    """Every dataclass of messages.py is in the table; a PlanEvent has a function of its own."""
    plain = {
        cls for cls in vars(values).values()
        if dataclasses.is_dataclass(cls) and cls.__module__ == values.__name__
    }  # fmt: skip
    assert set(conv._TABLE) == plain - {values.PlanEvent}


@settings(max_examples=60, deadline=None)
@given(
    IDS, TEXTS, TIMES, GOALS, RESULTS, TEXTS, COUNTS, st.booleans(),
    st.lists(NUMBERS, max_size=4).map(tuple), NUMBERS, st.sampled_from(PlanEventType), IDS,
)  # fmt: skip
def test_an_event_comes_back_as_it_was(
    plan_id, robot_id, stamp, goal, result, text, count, last, times, horizon, kind, instance
) -> None:
    carries_result = kind in conv._WITH_RESULT
    event = values.PlanEvent(
        plan_id, robot_id, kind, stamp,
        goal=dataclasses.replace(goal, robot_id=robot_id) if kind is PlanEventType.ACCEPTED
        else None,
        segment=count, text=text, last=last, tokens=count, step_times=times, horizon=horizon,
        # What the message does not have of a result stays at its default.
        result=dataclasses.replace(result, plan_id=plan_id, plan="", num_segments=0)
        if carries_result else None,
        recomputed_tokens=count,
    )  # fmt: skip
    message = through_the_wire(conv.event_to_ros(event, instance))
    assert conv.event_from_ros(message) == event
    assert conv.instance_from_ros(message.instance) == instance


def test_the_list_of_robots() -> None:
    robot = values.RobotInfo("r1", "tello", "/r1", 7, "kind: tello", registered=1.5)
    message = through_the_wire(conv.robots_to_ros((robot,), "ab" * 16, 2.25))
    assert [conv.from_ros(item) for item in message.robots] == [robot]
    assert conv.time_from_ros(message.stamp) == 2.25


CONSTANTS = {
    values.ErrorCode: Plan.Result,
    values.WhenBusy: Plan.Goal,
    values.OnFailure: Plan.Goal,
    Urgency: Plan.Goal,
    values.FeedbackState: Plan.Feedback,
    values.SegmentCommand: Segment,
    values.ExecutionState: Execution,
    values.PlanEventType: PlanEvent,
}


@pytest.mark.parametrize("enum", CONSTANTS, ids=lambda enum: enum.__name__)
def test_constants_are_those_of_the_messages(enum) -> None:
    assert {m.name: m.value for m in enum} == {
        m.name: getattr(CONSTANTS[enum], m.name) for m in enum
    }


def test_times_keep_their_microseconds() -> None:
    now = 1_795_248_300.123456
    assert conv.time_from_ros(conv.time_to_ros(now)) == pytest.approx(now, abs=1e-6, rel=0)
    assert conv.time_to_ros(1.9999999999).sec == 2  # rounded, never 1e9 ns


def test_all_zero_is_no_utility_of_its_own() -> None:
    assert conv.from_ros(Plan.Goal()).utility is None
    assert conv.utility_to_ros(None) == conv.RosTimeUtility()


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ((math.nan, 0.0, 1.0), "utility.ert is nan"),
        ((0.0, -math.inf, 1.0), "utility.alpha is -inf"),
        ((1.0, 2.0, 1.0), "utility.alpha is 2.0"),
        ((1.0, -2.0, 0.0), "utility.beta is 0.0"),
        ((-1.0, 0.0, 1.0), "utility.ert is -1.0"),
    ],
)
def test_a_utility_that_is_none_is_refused_with_its_field(fields, words) -> None:
    goal = Plan.Goal()
    goal.utility.ert, goal.utility.alpha, goal.utility.beta = fields
    with pytest.raises(ValueError, match=words):
        conv.from_ros(goal)


def test_a_number_that_names_no_constant_is_refused_with_its_field() -> None:
    with pytest.raises(ValueError, match="urgency is 9: must be one of 0 UNSPECIFIED, 1 CRITICAL"):
        conv.from_ros(Plan.Goal(urgency=9))
    with pytest.raises(ValueError, match="command is 7"):
        conv.from_ros(Segment(command=7))
    with pytest.raises(ValueError, match="type is 200"):
        conv.event_from_ros(PlanEvent(type=200))


@pytest.mark.parametrize("plan_id", ["12", "no", "0" * 34])
def test_an_id_that_is_none_is_refused(plan_id) -> None:
    with pytest.raises(ValueError, match="hexadecimal"):
        conv.to_ros(values.Segment(1, plan_id, 0))


BEYOND = [
    (Execution(elapsed=1e308), "elapsed is 1e+308: must be finite, -1e+06 to 1e+06"),
    (Execution(total_remaining=math.inf), "total_remaining is inf: must be finite"),
    (Execution(skill_remaining=math.nan), "skill_remaining is nan: must be finite"),
    (Execution(call=SkillCall(expected_duration=2e6)), "expected_duration is 2000000.0: must be"),
    (Execution(call=SkillCall(evaluated=["x"] * 5000)), "evaluated has 10000 characters: at most"),
    (Execution(value="x" * 8193), "value has 8193 characters: at most 8192"),
    (Plan.Goal(time_budget=1e308), "time_budget is 1e+308: must be finite"),
    (Plan.Goal(utility=RosTimeUtility(alpha=-1e308)), "utility.alpha is -1e+308: must be finite"),
    (Plan.Goal(robot_id="x" * 257), "robot_id has 257 characters: at most 256"),
    (Plan.Goal(instruction="x" * 10_000_000), "instruction has 10000000 characters: at most"),
    (Plan.Result(utility=math.inf), "utility is inf: must be finite, -1e+15 to 1e+15"),
    (Plan.Feedback(estimated_time_remaining=math.inf), "estimated_time_remaining is inf"),
    (PlannerStatus(step_time=math.nan), "step_time is nan"),
    (PlanEvent(horizon=math.inf), "horizon is inf"),
    (Probe.Request(timeout=math.inf), "timeout is inf"),
    (RegisterRobot.Request(skill_set="x" * 200_000), "skill_set has 200000 characters: at most"),
    (RegisterRobot.Request(kind="x" * 1000), "kind has 1000 characters: at most 256"),
]


@pytest.mark.parametrize(("message", "words"), BEYOND, ids=[words for _, words in BEYOND])
def test_what_cannot_be_is_refused_with_the_field_and_the_limit(message, words: str) -> None:
    with pytest.raises(ValueError, match=words.replace("e+", "e\\+")):
        if isinstance(message, PlanEvent):
            conv.event_from_ros(message)
        elif type(message) in conv._BY_MESSAGE:
            conv.from_ros(message)
        else:
            conv.check(message)


def test_of_what_went_wrong_no_more_is_kept_than_somebody_reads() -> None:
    report = conv.from_ros(Execution(error="x" * 10_000_000))
    assert report.error == "x" * 4096 + "… (10000000 characters)"


def test_a_text_that_no_message_can_carry_is_escaped() -> None:
    """Half of a surrogate pair, out of a file name or an SDK."""
    report = values.Execution(1, 1, values.NO_PLAN, values.ExecutionState.FAILED, error="a\udc80é")
    assert through_the_wire(conv.to_ros(report)).error == "a\\udc80é"
    event = values.PlanEvent(values.NO_PLAN, "r\udc80", PlanEventType.SEGMENT, text="\udc80")
    assert through_the_wire(conv.event_to_ros(event, "")).text == "\\udc80"
