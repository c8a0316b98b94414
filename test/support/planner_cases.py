"""The plans and the fleets that the planner's tests share."""

from fleet_sim import NETWORK, FleetSim

from timely_llm.core.config import PlannerConfig
from timely_llm.policies import Policy

PLANS = {
    "a": "go(2);go(3);say('hi')",
    "b": "go(1);go(1)",
    "long": "go(2);go(2);go(2);go(2);go(2)",
    "bad": "go(2);go(99);go(1)",
    "nothing": "",
}


def sim(*robots: str, policy: str = "timely", plans=None, **options) -> FleetSim:
    """A simulation whose robots have registered before 1.0."""
    made = FleetSim(plans or PLANS, policy, **options)
    for robot_id in robots or ("r1",):
        made.add_robot(robot_id)
    return made


def config(**fields) -> PlannerConfig:
    return PlannerConfig(network=NETWORK, **fields)


def choosing(choose, *robots: str, **options) -> FleetSim:
    run = sim(*robots, **options)
    run.planner.policy = Policy("test", choose)
    return run
