"""Robots whose skills fail, and what is planned then."""

from fleet_sim import FleetSim

from timely_llm.protocols.messages import OnFailure

PLANS = {
    "a": "go(2);go(3);go(1)",
    "a+1": "go(4);say('hi')",
    "a+2": "go(5)",
    "ask": "go(1);rp();go(5)",
    "ask+1": "go(0.5)",
    "find": "_1=0.5;?find('cat'){go(_1)}go(3)",
    "find+1": "go(1)",
    "long": "go(0.1);" + "go(9);" * 30,
    "long+1": "go(1);go(1)",
    "wrong": "go(3)",
    "wrong+1": "go(1);go(99)",
    "b": "go(1);go(1)",
}
# The planner's own check refuses a part of each.
REFUSED = {
    "high": "go(99);go(1)",
    "high+1": "go(9)",
    "later": "go(2);go(1);go(99);go(1)",
    "later+1": "go(0.5)",
    "walled": "go(3);go(99)",
    "walled+1": "go(4)",
    "never": "go(99)",
    "never+1": "go(98)",
}
WALL = {"go(3)": "a wall"}
REPLAN = {"on_failure": OnFailure.REPLAN}


def fleet(faults=WALL, *, policy="timely", **options) -> FleetSim:
    run = FleetSim(PLANS | REFUSED, policy, **options)
    run.add_robot("r1", faults=dict(faults))
    run.add_robot("r2")
    return run


def outcome(run: FleetSim, plan: str) -> tuple[str, str]:
    result = run.result(plan)
    return result.error_code.name, result.error_msg
