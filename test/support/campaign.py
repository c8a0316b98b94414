"""Random stories of a fleet, and a run that plays one."""

from dataclasses import dataclass, field

from fleet_sim import FleetSim
from hypothesis import strategies as st
from sim_parts import PROMPTS, walker

from robot_adapters.executor.executor import RobotExecutor
from timely_llm import policies
from timely_llm.core import events as ev
from timely_llm.core.config import Limits, PlannerConfig
from timely_llm.prompts.template import PromptTemplate
from timely_llm.protocols.engine import EngineError, Output
from timely_llm.protocols.messages import Execution, ExecutionState, OnFailure, Segment, WhenBusy
from timely_llm.protocols.utility import Urgency

QUESTION = "what is it"
WITH_PROBE = PromptTemplate(PROMPTS + "{% block probe %}{{ scene }}{{ instruction }}{% endblock %}")
ROBOTS = ("r1", "r2", "r3", "r4")
GOOD = (
    "go(1)",
    "go(0.5);go(0.5);go(2)",
    "say('a');say('b')",
    "?find('cat'){go(1);say('cat')}go(0.2);->'done'",
    "3{go(0.1);say('x')}",
    "go(0.1);->True;" + "go(3);" * 12,
    "_1=0.5;go(_1);go(_1+0.1)",
    ";".join(["go(0.3)"] * 9),
)
BAD = (
    "go(99)",
    "go(1);jump(1);go(1)",
    "go(1);?see(",
    "_1=99;go(0.1);go(_1);go(1)",
    "go(0.2);rp();go(1)",
    "",
    ";".join(["say('far too long a plan')"] * 20),
)
PLANS = {f"goal {n} ": text for n, text in enumerate(GOOD + BAD)}
REPLANS = {  # of any goal: what is planned when its plan, and the next one, has failed
    "+1": "go(0.2);?find('cat'){go(1)}->'again'",
    "+2": "go(0.3);rp()",
    "+3": "go(0.1);_1=99;go(_1)",
}
MOST = 3  # replans
INSTRUCTIONS = tuple(PLANS)

# Close together, so that they meet; the first ones while robots are still registering.
TIMES = st.integers(0, 100).map(lambda n: n / 40)
ROBOT = st.sampled_from(ROBOTS)


@dataclass
class Story:
    """One random run: how the fleet is made, and what happens when."""

    policy: str
    engine: dict
    network: float
    instances: bool  # a restarted robot has a new instance
    actions: list = field(default_factory=list)
    faults: dict = field(default_factory=dict)  # of the engine, by step


def action(kind: str, **fields):
    return st.fixed_dictionaries({"kind": st.just(kind), "at": TIMES, "robot": ROBOT} | fields)


GOAL = action(
    "goal",
    robot=st.sampled_from((*ROBOTS * 4, "r9")),
    instruction=st.sampled_from(INSTRUCTIONS),
    urgency=st.sampled_from(Urgency),
    when_busy=st.sampled_from(WhenBusy),
    on_failure=st.sampled_from(OnFailure),
    max_replans=st.integers(0, MOST),
)
WINDOW = {"length": st.floats(0.05, 5).map(lambda t: round(t, 2))}
TROUBLE = st.one_of(
    action("mute", **WINDOW),
    action("deaf", **WINDOW),
    action("lose", state=st.sampled_from(ExecutionState), **WINDOW),
    action("lose_segment", index=st.integers(0, 3), **WINDOW),
    action("restart"),
    action("stop"),
    action("stop_all"),
    action("own_stop"),
    action("rearm"),
    action("unregister"),
    action("deactivate"),
    action("activate"),
    action("fail", call=st.sampled_from(["go(1)", "find(cat)", "go(0.3)"])),
)
CANCEL = action("cancel", goal=st.integers(0, 9))
PROBE = action("probe", timeout=st.sampled_from([0.0, 0.05]))

STORIES = st.builds(
    Story,
    policy=st.sampled_from(policies.names()),
    engine=st.fixed_dictionaries(
        {
            "max_batch": st.integers(1, 4),
            "kv_blocks": st.sampled_from([30, 40, 400]),
            "lag": st.booleans(),
        }
    ),
    network=st.sampled_from([0.008, 0.1]),
    instances=st.booleans(),
    actions=st.tuples(
        st.lists(GOAL, min_size=3, max_size=14),
        st.lists(CANCEL, max_size=3),
        st.lists(PROBE, max_size=2),
        st.lists(TROUBLE, max_size=5),
    ).map(lambda lists: [one for some in lists for one in some]),
    faults=st.dictionaries(st.integers(1, 300), st.sampled_from(["raise", "output"]), max_size=2),
)


class Run:
    """Plays a story."""

    def __init__(self, story: Story) -> None:
        self.story = story
        self.windows: list[tuple[float, float, dict]] = []
        config = PlannerConfig(
            Limits(queue=3, replans=MOST), network=story.network, max_tokens=80, prefill_chunk=8
        )
        self.tickets: list[int] = []
        self.sim = FleetSim(
            REPLANS | PLANS | {QUESTION: "a cup"},
            story.policy,
            prompts=WITH_PROBE,
            kinds=[walker(), walker("another kind", kind="crawler")],
            config=config,
            network=story.network,
            fault=self._fault,
            **story.engine,
        )
        self.sim.lose = self._loses
        for robot_id in ROBOTS:
            kind = "crawler" if robot_id == "r3" else "walker"
            self.sim.add_robot(robot_id, kind, faults={})
        goals = [one for one in story.actions if one["kind"] == "goal"]
        self.ids = [
            self.sim.goal(
                one["robot"],
                one["instruction"],
                at=one["at"],
                urgency=one["urgency"],
                when_busy=one["when_busy"],
                on_failure=one["on_failure"],
                max_replans=one["max_replans"],
            )
            for one in goals
        ]
        for one in story.actions:
            if one["kind"] != "goal":
                getattr(self, "do_" + one["kind"])(one)
        self.sim.finish(settle=8.0)

    def _fault(self, step: int):
        what = self.story.faults.get(step)
        if what == "raise":
            raise EngineError("out of luck")
        live = [name for name in self.sim.engine._live if not name.startswith("pin")]
        if what == "output" and live:
            self.sim.engine.abort(live[0])  # an engine drops what failed
            return {live[0]: Output("", 0, "error", "broke")}
        return None

    def _loses(self, robot_id: str, message: Segment | Execution) -> bool:
        return any(
            begin <= self.sim.now < end
            and one["robot"] == robot_id
            and (
                (isinstance(message, Segment) and message.index == one.get("index"))
                or (isinstance(message, Execution) and message.state is one.get("state"))
            )
            for begin, end, one in self.windows
        )

    def _window(self, one: dict) -> None:
        self.windows.append((one["at"], one["at"] + one["length"], one))

    do_lose = do_lose_segment = _window

    def _flag(self, one: dict) -> None:
        def put(value: bool) -> None:
            setattr(self.sim.robots[one["robot"]], one["kind"], value)

        self.sim.at(one["at"], lambda: put(True))
        self.sim.at(one["at"] + one["length"], lambda: put(False))

    do_mute = do_deaf = _flag

    def do_cancel(self, one: dict) -> None:
        self.sim.cancel(self.ids[one["goal"] % len(self.ids)], at=one["at"])

    def do_probe(self, one: dict) -> None:
        def ask() -> None:
            session = self.sim.robots[one["robot"]].session
            question = (one["robot"], session, QUESTION, "", one["timeout"])
            self.tickets.append(self.sim.ask(lambda ticket: ev.AskProbe(ticket, *question)))

        self.sim.at(one["at"], ask)

    def do_restart(self, one: dict) -> None:
        instance = "" if self.story.instances else f"{one['robot']}-1"
        self.sim.restart_robot(one["robot"], one["at"], instance)

    def do_stop(self, one: dict) -> None:
        self.tickets.append(self.sim.ask(lambda t: ev.StopRobots(t, one["robot"]), one["at"]))

    def do_stop_all(self, one: dict) -> None:
        self.tickets.append(self.sim.ask(lambda t: ev.StopRobots(t), one["at"]))

    def _own(self, one: dict) -> None:
        def act() -> None:
            robot = self.sim.robots[one["robot"]]
            method = RobotExecutor.on_stop if one["kind"] == "own_stop" else RobotExecutor.on_rearm
            self.sim._publish(robot, method(robot.executor, self.sim.now))

        self.sim.at(one["at"], act)

    do_own_stop = do_rearm = _own

    def do_unregister(self, one: dict) -> None:
        self.tickets.append(self.sim.ask(lambda t: ev.UnregisterRobot(t, one["robot"]), one["at"]))

    def do_deactivate(self, one: dict) -> None:
        self.sim.tell(ev.Deactivate(), one["at"])

    def do_activate(self, one: dict) -> None:
        self.sim.tell(ev.Activate(), one["at"])

    def do_fail(self, one: dict) -> None:
        def fail() -> None:
            self.sim.robots[one["robot"]].body.faults[one["call"]] = "broken"

        self.sim.at(one["at"], fail)
