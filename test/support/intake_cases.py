"""A fleet of two robots, and goals for them, for the tests of goals coming in."""

from fleet_sim import FleetSim

PLANS = {
    "long": "go(2);go(3);go(1)",
    "short": "go(1)",
    "bad": "go(99)",
}


def sim(**options) -> FleetSim:
    run = FleetSim(PLANS, **options)
    run.add_robot("r1")
    run.add_robot("drone2")
    return run


def refusal(run: FleetSim, plan: str) -> tuple[str, str]:
    """Code and words of a goal that must have ended without a segment, and at once."""
    run.finish()
    result = run.result(plan)
    assert run.segments(plan) == []
    assert (result.num_segments, result.response_time, result.waiting_time) == (0, -1.0, 0.0)
    assert run.story(plan)[-1].split()[1] == "REFUSED"
    return result.error_code.name, result.error_msg
