"""Which function takes in which event."""

from __future__ import annotations

from collections.abc import Callable

from timely_llm.core import events as ev
from timely_llm.core import intake, probes, registration, reports
from timely_llm.core.state import Plans

HANDLERS: dict[type, Callable[[Plans, ev.Event, float], None]] = {
    ev.GoalArrived: intake.goal_arrived,
    ev.GoalInvalid: intake.goal_invalid,
    ev.GoalCanceled: intake.goal_canceled,
    ev.Activate: intake.activate,
    ev.Deactivate: intake.deactivate,
    ev.ExecutionArrived: reports.execution_arrived,
    ev.StopRobots: reports.stop_robots,
    ev.KeepTimes: reports.keep_times,
    ev.AskProbe: probes.ask_probe,
    ev.RegisterRobot: registration.register_robot,
    ev.UnregisterRobot: registration.unregister_robot,
}
"""Each is called with the live plans, the event and when it was received, in s."""
