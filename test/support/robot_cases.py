"""For tests of robots that come and go: a registration by hand, who is there. No tests here."""

from fleet_sim import FleetSim

from timely_llm.core import events as ev

PLANS = {"long": "go(2);go(3);go(1)", "short": "go(1)"}


def register(run: FleetSim, at: float = 0.0, **fields) -> ev.Registered:
    """The answer to a registration without a robot behind it."""
    fields = {"robot_id": "r9", "kind": "walker"} | fields
    ticket = run.ask(lambda ticket: ev.RegisterRobot(ticket, **fields), at)
    run.run(max(run.now, at) + 0.1)
    return run.answers[ticket]


def robots(run: FleetSim) -> list[str]:
    """Ids of the latest robot list, which other nodes see."""
    lists = [command.robots for _, command in run.log if isinstance(command, ev.RobotsChanged)]
    return [info.robot_id for info in lists[-1]]
