"""Simulated drone and arm on virtual time: what they do, find out, refuse, and in what time.

The published tasks are flown in the bundled worlds with nothing but a clock standing in.
"""

from __future__ import annotations

import json
import random

import pytest

from robot_adapters.base import Adapter, AdapterError, make_adapter
from robot_adapters.bodies import Pose
from robot_adapters.executor import RobotExecutor
from robot_adapters.simulated import LANDING_SPEED, TAKEOFF_TIME, SimulatedAdapter
from timely_llm.messages import ExecutionState, Segment, SkillCall
from timely_llm.paths import share
from timely_llm.segment import segments
from timely_llm.skills import SkillSet, value_text

State = ExecutionState
TELLO = SkillSet.from_file(share("config", "skills", "tello.yaml"))
INDY7 = SkillSet.from_file(share("config", "skills", "indy7.yaml"))
TASKS = json.loads(share("timely_llm", "data", "lrtrace_tasks.json").read_text())["tasks"]


def call(skills: SkillSet, name: str, *values) -> SkillCall:
    skill = skills[name]
    texts = tuple(map(value_text, values))
    return SkillCall(skill.name, texts, texts, skill.expected_duration(values))


class Pilot:
    """Carries out calls one after another, on a clock of its own."""

    def __init__(self, skills: SkillSet = TELLO, **parameters) -> None:
        self.skills = skills
        self.adapter = make_adapter("simulated", "r1", skills, **parameters)
        self.now = 100.0

    @property
    def body(self):
        return self.adapter.body

    def do(self, name: str, *values):
        """Value of a call that is carried out to its end; ``ValueError`` if it is refused."""
        wanted = call(self.skills, name, *values)
        if reason := self.adapter.check(wanted):
            raise ValueError(reason)
        started = self.now
        self.adapter.start(wanted, self.now)
        self.now = self.adapter.next_poll(self.now)
        progress = self.adapter.poll(self.now)
        assert progress.done
        self.took = self.now - started
        assert progress.elapsed == pytest.approx(self.took)
        return progress.value

    def start(self, name: str, *values) -> None:
        self.adapter.start(call(self.skills, name, *values), self.now)

    def wait(self, seconds: float):
        self.now += seconds
        return self.adapter.poll(self.now)


@pytest.fixture
def drone() -> Pilot:
    return Pilot()


@pytest.fixture
def arm() -> Pilot:
    return Pilot(INDY7)


def at(pilot: Pilot) -> tuple:
    pose = pilot.body.pose
    return tuple(round(value, 3) for value in (*pose.point, pose.yaw))


def test_it_is_an_adapter(drone: Pilot) -> None:
    assert isinstance(drone.adapter, Adapter)


# ---- the drone -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "pose"),
    [
        ("mf", 100, (1, 0, 1, 0)),
        ("mb", 100, (-1, 0, 1, 0)),
        ("ml", 100, (0, 1, 1, 0)),
        ("mr", 100, (0, -1, 1, 0)),
        ("mu", 100, (0, 0, 2, 0)),
        ("md", 50, (0, 0, 0.5, 0)),
        ("tc", 90, (0, 0, 1, -90)),
        ("tu", 90, (0, 0, 1, 90)),
    ],
)
def test_moves_lead_where_they_say_in_the_published_time(drone, name, value, pose) -> None:
    assert drone.do(name, value) is None
    assert at(drone) == pose
    assert drone.took == pytest.approx(TELLO[name].expected_duration((value,)))


def test_moves_go_along_the_nose(drone: Pilot) -> None:
    drone.do("tu", 90)
    drone.do("mf", 100)
    drone.do("mr", 50)
    assert at(drone) == (0.5, 1, 1, 90)


def test_progress_is_linear_and_remaining_is_what_is_expected(drone: Pilot) -> None:
    drone.start("mf", 100)  # 2.5344 s
    progress = drone.wait(0.6336)
    assert (progress.done, progress.elapsed) == (False, pytest.approx(0.6336))
    assert progress.remaining == pytest.approx(1.9008)
    assert at(drone) == (0.25, 0, 1, 0)


def test_a_halt_stays_where_it_is(drone: Pilot) -> None:
    drone.start("mf", 100)
    drone.now += 1.2672
    drone.adapter.halt(drone.now)
    drone.adapter.halt(drone.now)
    assert drone.wait(10).done
    assert at(drone) == (0.5, 0, 1, 0)
    assert drone.adapter.next_poll(drone.now) is None


@pytest.mark.parametrize(
    ("start", "name", "value", "words"),
    [
        ({}, "mu", 201, "z would be 3.01 m: geofence is 0.2 to 3 m"),
        ({}, "md", 81, "z would be 0.19 m"),
        ({"yaw": 90.0}, "mf", 500, None),
        ({"x": 3.0}, "mf", 500, None),  # the fence is about where it started
    ],
)
def test_the_geofence_is_checked_before_the_motion(start, name, value, words) -> None:
    drone = Pilot(**start)
    before = at(drone)
    reason = drone.adapter.check(call(TELLO, name, value))
    assert (words in reason) if words else reason is None
    assert at(drone) == before


def test_the_fence_lies_about_the_start() -> None:
    drone = Pilot(x=2.0)
    drone.do("mf", 500)
    drone.do("mf", 500)
    with pytest.raises(ValueError, match="x would be 12.20 m: geofence is -8 to 12 m"):
        drone.do("mf", 20)


def test_travel_is_the_way_of_the_body(drone: Pilot) -> None:
    travel = drone.adapter.travel
    assert travel(call(TELLO, "mf", 150)) == pytest.approx(1.5)
    assert travel(call(TELLO, "tc", 90)) == 0
    assert travel(call(TELLO, "iv", "cat")) == 0


def test_questions_are_answered_truthfully(drone: Pilot) -> None:
    assert drone.do("iv", "countertop") is True
    assert drone.do("iv", "keys") is True
    assert drone.do("iv", "cat") is False  # not in this direction
    assert drone.do("iv", "unicorn") is False
    assert drone.do("ox", "keys") < 0.5 < drone.do("ox", "wallet")
    assert drone.do("oy", "keys") > 0.5  # below the camera
    assert drone.do("od", "keys") == 297
    assert 0.05 < drone.do("ow", "countertop") < 1
    assert 0 < drone.do("oh", "countertop") < 1
    assert drone.do("p", "which one can I drink?") == "bottle"
    assert drone.do("p", "which one is explosive?") == "False"
    with pytest.raises(ValueError, match="'cat' is not in view"):
        drone.do("ox", "cat")
    assert drone.took == pytest.approx(0.041)


def test_a_scan_turns_until_it_sees_the_thing(drone: Pilot) -> None:
    assert drone.do("s", "cat") is True
    assert at(drone) == (0, 0, 1, 45)
    assert drone.do("iv", "cat") is True
    assert drone.took == pytest.approx(0.001)
    assert drone.do("s", "unicorn") is False
    assert at(drone) == (0, 0, 1, 405)


def test_a_scan_by_description_tells_the_name(drone: Pilot) -> None:
    assert drone.do("sa", "something sharp?") == "scissors"
    assert drone.do("sa", "something explosive?") is False


def test_a_scan_takes_a_published_time_and_does_not_know_which(drone: Pilot) -> None:
    times = set()
    for _ in range(60):
        drone.do("s", "cat")
        times.add(round(drone.took / 1.5275, 6))
    assert times == set(range(1, 9))
    drone.start("s", "cat")
    assert drone.wait(0.5).remaining == pytest.approx(1.0275)


def test_goto_faces_the_thing_and_keeps_it_in_view(drone: Pilot) -> None:
    with pytest.raises(ValueError, match="'cat' is not in view"):
        drone.do("g", "cat")
    drone.do("s", "cat")
    before = drone.do("od", "cat")
    drone.do("g", "cat")
    assert drone.took == pytest.approx(2.5)
    assert drone.do("ox", "cat") == pytest.approx(0.5, abs=0.01)
    assert 0.9 < drone.do("oy", "cat") < 1  # it lies on the floor
    assert drone.do("od", "cat") < before - 50


def test_goto_stands_off_what_is_at_its_height(drone: Pilot) -> None:
    drone.do("s", "person")
    drone.do("g", "person")
    person, pose = drone.body.world["person"], drone.body.pose
    gap = max(abs(person.center[0] - pose.x), abs(person.center[1] - pose.y)) - 0.2
    assert 0.3 < gap < 0.6


def test_goto_stops_before_what_stands_in_the_way(drone: Pilot) -> None:
    drone.do("md", 30)  # level with the countertop's side
    drone.do("g", "countertop")
    assert drone.body.pose.x == pytest.approx(2.7 - 0.5)


# ---- a drone that nobody plans for ---------------------------------------------------------------


def test_without_planner_it_hovers_then_lands(drone: Pilot) -> None:
    drone.adapter.hold(drone.now)
    drone.wait(5.0)
    assert at(drone) == (0, 0, 1, 0)
    drone.wait(1.0)
    assert drone.body.pose.z == pytest.approx(1 - LANDING_SPEED)
    drone.adapter.hold(drone.now)  # again: goes on as it was
    drone.wait(1.0)
    assert at(drone) == (0, 0, 0, 0)
    assert drone.adapter.diagnostics()["state"] == "landed"
    assert drone.adapter.next_poll(drone.now) is None


def test_it_asks_to_be_polled_when_it_has_landed(drone: Pilot) -> None:
    drone.adapter.hold(drone.now)
    drone.now = drone.adapter.next_poll(drone.now)
    drone.adapter.poll(drone.now)
    assert at(drone) == (0, 0, 0, 0)


def test_a_planner_that_is_back_ends_the_descent(drone: Pilot) -> None:
    drone.adapter.hold(drone.now)
    drone.wait(6.0)
    drone.adapter.resume(drone.now)
    drone.wait(60.0)
    assert at(drone) == (0, 0, 0.5, 0)
    drone.do("mu", 50)
    assert at(drone) == (0, 0, 1, 0)


def test_after_landing_it_takes_off_before_what_takes_time(drone: Pilot) -> None:
    drone.adapter.hold(drone.now)
    drone.wait(60.0)
    drone.adapter.resume(drone.now)
    assert drone.do("iv", "keys") is False  # from the ground
    drone.start("mf", 100)
    assert drone.wait(TAKEOFF_TIME / 2).remaining == pytest.approx(2.5344 + TAKEOFF_TIME / 2)
    assert at(drone) == (0, 0, 0.5, 0)
    drone.wait(TAKEOFF_TIME / 2 + 2.5344)
    assert at(drone) == (1, 0, 1, 0)
    drone.do("mf", 100)
    assert drone.took == pytest.approx(2.5344)


def test_a_halt_in_the_descent_stays_there(drone: Pilot) -> None:
    drone.adapter.hold(drone.now)
    drone.now += 6.0
    drone.adapter.halt(drone.now)
    drone.wait(60.0)
    assert at(drone) == (0, 0, 0.5, 0)


# ---- the arm -------------------------------------------------------------------------------------


def test_an_arm_picks_and_stacks(arm: Pilot) -> None:
    assert arm.do("sc", "red box") is True
    assert 1 <= arm.took <= 3
    arm.do("gt", "red box")
    arm.do("pi", "red box")
    assert arm.adapter.diagnostics()["holds"] == "red box"
    arm.do("gt", "blue box")
    arm.do("dr")
    world = arm.body.world
    assert world["red box"].position == (0.55, 0.15, pytest.approx(0.06))
    arm.do("pi", "green box")
    arm.do("gt", "red box")
    arm.do("dr")
    assert world["green box"].position == (0.55, 0.15, pytest.approx(0.12))


@pytest.mark.parametrize(
    ("before", "name", "values", "words"),
    [
        ([], "gt", ("moon",), "'moon' is not in view"),
        ([], "gt", ("crate",), "'crate' is 1.10 m away: reach is 0.15 to 0.93 m"),
        ([], "pi", ("crate",), "reach is"),
        ([], "dr", (), "the gripper holds nothing"),
        ([("pi", "apple")], "pi", ("lemon",), "the gripper holds 'apple' already"),
        ([("pi", "apple")], "gt", ("apple",), "'apple' is not in view"),
    ],
)
def test_an_arm_refuses_what_it_cannot_do(arm: Pilot, before, name, values, words) -> None:
    for step in before:
        arm.do(*step)
    with pytest.raises(ValueError, match=words):
        arm.do(name, *values)


def test_an_arm_that_is_halted_on_the_way_has_gripped_nothing(arm: Pilot) -> None:
    arm.start("pi", "apple")
    arm.wait(1.0)
    arm.adapter.halt(arm.now)
    arm.wait(10.0)
    assert "holds" not in arm.adapter.diagnostics()
    assert arm.body.world["apple"].position == (0.7, 0.25, 0.0)


def test_an_arm_sees_what_is_on_its_table(arm: Pilot) -> None:
    assert arm.do("sc", "unicorn") is False
    assert arm.do("iv", "lemon") is True
    assert "red_box x:" in arm.adapter.observe()
    arm.adapter.hold(arm.now)  # an arm just stays
    assert arm.adapter.next_poll(arm.now) is None


# ---- making one ----------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_times() -> None:
    def times(robot_id: str, seed: int) -> list[float]:
        adapter = SimulatedAdapter(robot_id, INDY7, seed=seed)
        return [adapter._rng.random() for _ in range(5)]

    assert times("r1", 1) == times("r1", 1)
    assert len({tuple(times(*key)) for key in (("r1", 1), ("r1", 2), ("r2", 1))}) == 3


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"body": "dron"}, "unknown 'dron'; did you mean 'drone'?"),
        ({"world": "hause"}, "no bundled world 'hause'; did you mean 'house'?"),
        ({"world": "/nowhere.yaml"}, "/nowhere.yaml"),
        ({"z": 0.1}, "start: z would be 0.10 m: geofence is 0.2 to 3 m"),
        ({"sead": 3}, "unknown parameter 'sead'; did you mean 'seed'?"),
    ],
)
def test_wrong_parameters_are_refused(parameters, words) -> None:
    with pytest.raises(AdapterError) as caught:
        make_adapter("simulated", "r1", TELLO, **parameters)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("simulatet", "unknown name 'simulatet'; did you mean 'simulated'"),
        ("no_such_module:Rover", "No module named 'no_such_module'"),
        ("robot_adapters.simulated:Rover", "has no attribute 'Rover'"),
    ],
)
def test_an_unknown_adapter_is_refused(name, words) -> None:
    with pytest.raises(AdapterError, match=words):
        make_adapter(name, "r1", TELLO)


def test_an_adapter_of_ones_own_is_named_by_module_and_class() -> None:
    adapter = make_adapter("robot_adapters.simulated:SimulatedAdapter", "r1", TELLO, seed=3)
    assert isinstance(adapter, SimulatedAdapter)


ROVER = """
kind: rover
skills:
  - {name: mf, long_name: move_forward, arguments: [{name: d, type: int, minimum: 1, maximum: 100}],
     duration: {constant: 1}}
  - {name: beep, duration: {constant: 0.5}}
  - {name: soil, duration: {constant: 2}, returns: float}
"""


def test_a_robot_of_ones_own_does_what_the_world_knows_and_takes_its_time_else() -> None:
    rover = Pilot(SkillSet.from_yaml(ROVER), z=0.0)
    assert rover.do("beep") is None
    assert rover.took == pytest.approx(0.5)
    assert rover.do("soil") == 0.0
    rover.do("mf", 100)
    assert at(rover) == (1, 0, 0, 0)
    rover.adapter.hold(rover.now)  # nothing that could land
    assert rover.adapter.next_poll(rover.now) is None


# ---- the published tasks -------------------------------------------------------------------------

#: Where a drone stands for a task, and what comes of it in the bundled house.
STARTS = {
    1: {},
    2: {"y": 0.5, "yaw": 90.0},
    3: {"x": -0.5, "yaw": 180.0},
}


def fly(task: dict, **parameters) -> tuple[list[str], RobotExecutor]:
    """Carry out the published plan on virtual time; the calls done, and the end in words."""
    skills = TELLO if task["robot"] == "drone" else INDY7
    robot = RobotExecutor(make_adapter("simulated", "r1", skills, **parameters))
    log, now = [], 0.0
    reports = robot.new_session(1, now, "p")
    parts = segments(task["plan"], skills)
    for index, text in enumerate(parts):
        last = index == len(parts) - 1
        reports += robot.on_segment(Segment(1, "a" * 32, index, text=text, last=last), now)
    while not any(r.state in (State.PLAN_RETURNED, State.FAILED) for r in reports):
        now = robot.next_wake(now)
        robot.on_planner_heartbeat("p", now)
        reports += robot.tick(now)
    for report in reports:
        if report.state is State.SUCCEEDED:
            value = f" {report.value}" if report.has_value else ""
            log.append(f"{report.call.name}({','.join(report.call.evaluated)}){value}")
        elif report.state in (State.PLAN_RETURNED, State.FAILED):
            log.append(f"{report.state.name} {report.value or report.error}".strip())
    return log, robot


EXPECTED = {
    0: ["s(cat) True", "g(cat)", "PLAN_RETURNED"],
    1: ["iv(keys) True", "iv(wallet) True", "l(Yes)", "PLAN_RETURNED True"],
    2: ["mu(40)", "iv(book) True", "tp()", "PLAN_RETURNED True"],
    3: ["md(40)", "iv(toy) True", "g(toy)", "PLAN_RETURNED"],
    4: ["s(scissors) True", "g(scissors)", "PLAN_RETURNED"],
    5: ["mr(50)", "mf(50)", "PLAN_RETURNED"],
    6: ["mu(50)", "ml(50)", "PLAN_RETURNED"],
    7: ["d(3)", "mf(50)", "PLAN_RETURNED"],
    8: ["sc(red box) True", "gt(red box)", "pi(red box)", "sc(blue box) True", "gt(blue box)",
        "dr()", "sc(green box) True", "gt(green box)", "pi(green box)", "sc(red box) True",
        "gt(red box)", "dr()", "PLAN_RETURNED"],
}  # fmt: skip


@pytest.mark.parametrize("task", TASKS, ids=lambda task: str(task["id"]))
def test_the_published_tasks_come_to_their_end_in_the_bundled_worlds(task) -> None:
    log, robot = fly(task, **STARTS.get(task["id"], {}))
    assert log[-1].startswith("PLAN_RETURNED")
    assert "False" not in " ".join(log[:-1])
    if task["id"] in EXPECTED:
        assert [line.removesuffix(" False") for line in log] == EXPECTED[task["id"]]


@pytest.mark.parametrize("task_id", [2, 3])
def test_the_book_and_the_toy_are_seen_only_after_the_move(task_id: int) -> None:
    task = dict(TASKS[task_id], plan=TASKS[task_id]["plan"].partition(";")[2])
    log, _ = fly(task, **STARTS[task_id])
    assert log == [f"iv({'book' if task_id == 2 else 'toy'}) False", "PLAN_RETURNED False"]


def test_the_same_seed_gives_the_same_flight() -> None:
    task = TASKS[10]
    assert fly(task, seed=5)[0] == fly(task, seed=5)[0]


def test_any_walk_stays_within_the_fence() -> None:
    rng = random.Random(1)
    drone = Pilot()
    for _ in range(400):
        name = rng.choice(["mf", "mb", "ml", "mr", "mu", "md", "tc", "tu"])
        high = 360 if name in ("tc", "tu") else 500
        wanted = call(TELLO, name, rng.randint(20, high))
        if drone.adapter.check(wanted) is None:
            drone.adapter.start(wanted, drone.now)
            drone.wait(rng.uniform(0, 6))
            drone.adapter.halt(drone.now)
        pose: Pose = drone.body.pose
        assert abs(pose.x) <= 10 and abs(pose.y) <= 10 and 0.2 <= pose.z <= 3
