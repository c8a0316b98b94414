"""Settings without parameters, and what a goal leaves to them."""

import pytest

from timely_llm.core.config import (
    Limits,
    PlannerConfig,
    check_overload,
    replans_of,
    urgency_of,
)
from timely_llm.protocols.messages import OnFailure, PlanGoal
from timely_llm.protocols.utility import PRESETS, TimeUtility, Urgency

GOAL = {"robot_id": "r1", "instruction": "go"}


def test_the_defaults_are_those_that_the_documents_name():
    limits, config = Limits(), PlannerConfig()
    assert (limits.instruction, limits.scene, limits.queue, limits.replans) == (1000, 4000, 16, 5)
    assert (config.max_tokens, config.prefill_chunk, config.network) == (2048, 64, 0.008)
    assert (config.ack_timeout, config.heartbeat_timeout) == (2.0, 3.0)
    assert (config.first_report_timeout, config.stop_timeout, config.probe_timeout) == (10, 5, 5)
    assert (config.overload, config.presets) == ("late", PRESETS)


def test_a_goal_s_own_utility_goes_before_the_preset():
    own = TimeUtility(3.0, -1.0, 2.0)
    config = PlannerConfig()
    assert config.utility_of(PlanGoal(**GOAL, utility=own)) == own
    assert config.utility_of(PlanGoal(**GOAL, urgency=Urgency.LOW)) == PRESETS[Urgency.LOW]
    assert config.utility_of(PlanGoal(**GOAL)) == PRESETS[Urgency.NORMAL]
    assert urgency_of(PlanGoal(**GOAL)) is Urgency.NORMAL
    assert urgency_of(PlanGoal(**GOAL, urgency=Urgency.URGENT)) is Urgency.URGENT


def test_replan_without_a_number_means_once():
    assert replans_of(PlanGoal(**GOAL, on_failure=OnFailure.REPLAN)) == 1
    assert replans_of(PlanGoal(**GOAL, on_failure=OnFailure.REPLAN, max_replans=3)) == 3
    assert replans_of(PlanGoal(**GOAL)) == 0


def test_an_unknown_way_at_overload_names_the_nearest():
    assert [check_overload(way) for way in ("late", "refuse")] == ["late", "refuse"]
    with pytest.raises(ValueError, match="overload is 'refus': must be late or refuse; did you"):
        PlannerConfig(overload="refus")
