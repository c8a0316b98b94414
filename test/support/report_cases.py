"""Two robots with plans of their own, a network that loses things, and reports that nobody made."""

from fleet_sim import FleetSim

from timely_llm.core import events as ev
from timely_llm.core.config import PlannerConfig
from timely_llm.protocols.messages import Execution, ExecutionState, Segment

PLANS = {
    "long": "go(2);go(3);go(1)",
    "short": "go(1)",
    "find": "?find('cat'){go(1);->'seen'}go(2);->'gone'",
    "vary": "_1=99;go(_1)",
    "replan": "go(1);rp();go(5)",
}


def sim(*, config: PlannerConfig | None = None, **robot) -> FleetSim:
    run = FleetSim(PLANS, config=config)
    run.add_robot("r1", **robot)
    run.add_robot("r2")
    return run


def lose(run: FleetSim, *kinds, once: bool = False) -> list[Segment | Execution]:
    """The network loses reports of these states, or segments with these commands."""
    lost = []

    def loses(robot_id: str, message: Segment | Execution) -> bool:
        kind = message.state if isinstance(message, Execution) else message.command
        hit = robot_id == "r1" and any(kind is one for one in kinds)
        if hit and not (once and lost):
            lost.append(message)
            return True
        return False

    run.lose = loses
    return lost


def outcome(run: FleetSim, plan: str) -> tuple[str, str]:
    result = run.result(plan)
    return result.error_code.name, result.error_msg


def report(run: FleetSim, robot_id: str, plan: str, state: ExecutionState, **fields) -> Execution:
    """A report that the robot's executor never made."""
    defaults = {"session": run.robots[robot_id].session, "sequence": 10_000, "segment": 0}
    made = Execution(plan_id=plan, state=state, **(defaults | fields))
    run.tell(ev.ExecutionArrived(robot_id, made))
    return made
