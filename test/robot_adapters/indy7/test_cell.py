"""The cell of an arm: what a file says, and every way in which it is refused."""

import math

import pytest

from robot_adapters.adapter import AdapterError
from robot_adapters.indy7.arm_skills import ArmSkills
from robot_adapters.indy7.cell import load_cell, read_cell
from robot_adapters.indy7.kinematics import HOME, joint_way, joints_for, straight_way, tool
from timely_llm.paths import share
from timely_llm.simulation.workloads.tasks import published
from timely_llm.validation.reader import FileError

TEXT = """description: a table
approach: 80
travel_height: 200
workspace:
  x: [-500, 800]
  y: [-600, 600]
  z: [0, 700]
reach: [150, 800]
gripper:
  output: {address: 8}
  time: 0.5
poses:
  home: {joints: [0, 0, 90, 0, 90, 0]}
  corner: {task: [300, 300, 300, 180, 0, 45]}
objects:
  - {name: red box, position: [400, 0, 0], size: [60, 40, 50], aliases: [brick]}
  - {name: lid, position: [400, 0, 50], size: [60, 40, 10], grip: 5, angle: 90}
"""


def refused(old: str, new: str) -> str:
    assert old in TEXT
    with pytest.raises(FileError) as caught:
        read_cell(TEXT.replace(old, new), "c.yaml")
    return str(caught.value)


def test_what_a_cell_says():
    cell = read_cell(TEXT)
    box = cell.find("Red_Box_1")
    assert (box.name, box.grip, box.top, box.angle) == ("red box", 25, 50, 0)
    assert cell.find("brick") == box and cell.find("cat") is None
    assert cell.pose("corner").task == (300, 300, 300, 180, 0, 45)
    assert cell.gripper.open == ("set_do", {"do_signal_list": [(8, 0)]})
    assert cell.gripper.close == ("set_do", {"do_signal_list": [(8, 1)]})
    assert cell.gripper.sensor is None
    assert cell.unknown("bric").startswith("'bric' is not in the cell; did you mean")


def test_what_is_moved_lies_elsewhere_and_carries():
    cell = read_cell(TEXT)
    assert (cell.support(410, 10), cell.support(410, 10, "lid"), cell.support(0, 0)) == (60, 50, 0)
    moved = cell.moved("lid", (200, 0, 0))
    assert (moved.support(400, 0), moved.support(200, 0)) == (50, 10)
    assert cell.support(200, 0) == 0  # the first is as it was


@pytest.mark.parametrize(
    ("gripper", "closes"),
    [
        ("output: {address: 2, closed: false}", ("set_do", {"do_signal_list": [(2, 0)]})),
        ("endtool: {port: A, open: off, close: high_pnp}",
         ("set_endtool_do", {"end_do_signal_list": [("A", [2])]})),
        ("tool: {open: release, close: grasp}", ("execute_tool", {"name": "grasp"})),
        ("command: {type: 3, open: {command: 1}, close: {command: 2, data: [5, 6]}}",
         ("set_gripper_command", {"command": 2, "gripper_type": 3, "pvt_data": [5, 6]})),
    ],
)  # fmt: skip
def test_a_gripper_is_an_output_a_tool_or_a_command(gripper, closes):
    cell = read_cell(TEXT.replace("output: {address: 8}", gripper))
    assert (cell.gripper.close[0], dict(cell.gripper.close[1])) == closes


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("reach:", "raech:", "c.yaml:8: unknown key 'raech'; did you mean 'reach'?"),
        ("  z: [0, 700]\n", "", "c.yaml:4: workspace: 'z' is missing"),
        ("x: [-500, 800]", "x: [800, -500]", "c.yaml:5: workspace.x: is 800 to -500: the first"),
        ("  output: {address: 8}\n", "", "c.yaml:9: gripper: must have one of 'output'"),
        ("address: 8", "address: 64", "c.yaml:10: gripper.output.address: is 64: must be 0 to 63"),
        (
            "address: 8",
            "address: 1.5",
            "gripper.output.address: is 1.5: must be a whole number",
        ),
        ("address: 8", "address: 8, closed: 1", "c.yaml:10: gripper.output.closed: is 1: must be"),
        ("time: 0.5", "time: .nan", "c.yaml:11: gripper.time: is '.nan': must be a finite number"),
        ("90, 0]}", "90]}", "c.yaml:13: poses.home.joints: has 5 entries: must have 6 to 6"),
        (
            "{joints: [0, 0, 90, 0, 90, 0]}",
            "{}",
            "c.yaml:13: poses.home: must have either",
        ),
        ("[300, 300, 300,", "[300, 300, 900,", "c.yaml:14: poses.corner: z would be 900 mm: the"),
        (
            "  home:",
            "  home_1: {joints: [0, 0, 0, 0, 0, 0]}\n  home_2:",
            "c.yaml:14: poses.home_2: is called like the pose 'home_1': a number at the end",
        ),
        ("  home:", "  '7':", "c.yaml:13: poses.7: must have more to it than a number"),
        ("name: lid", "name: '_9'", "c.yaml:17: objects[1].name: must have more to it than a num"),
        ("aliases: [brick]", "aliases: [home]", "c.yaml:16: objects[0].aliases[0]: 'home' is alr"),
        ("name: lid", "name: Red_Box", "c.yaml:17: objects[1].name: 'Red_Box' is already the name"),
        ("grip: 5", "grip: 11", "c.yaml:17: objects[1].grip: is 11 mm: must be 0 to 10 mm"),
        ("[400, 0, 50]", "[400, 0, 650]", "c.yaml:17: objects[1].position: the gripper could not"),
        ("[400, 0, 50]", "[100, 0, 50]", "could not be there: it is 100 mm from the base: reach"),
        ("approach: 80", "approach: 20", "its grip is 25 mm: must be less than approach, 20 mm"),
        ("description", "scan: nowhere\ndescription", "c.yaml:1: scan: 'nowhere' is unknown"),
    ],
)
def test_a_wrong_cell_is_refused_with_line_and_field(old, new, words):
    assert words in refused(old, new)


def test_a_file_that_is_not_there_or_broken_is_an_error_of_the_adapter(tmp_path):
    with pytest.raises(AdapterError, match="cell: .*nowhere.yaml"):
        load_cell(tmp_path / "nowhere.yaml")
    (tmp_path / "broken.yaml").write_text("objects: [")
    with pytest.raises(AdapterError, match="broken.yaml:1: is not YAML"):
        load_cell(tmp_path / "broken.yaml")


CELL = load_cell(share("config", "cells", "indy_sim.yaml"))


def test_the_bundled_cell_has_what_the_published_arm_tasks_name():
    plans = [task.plan for task in published() if task.kind == "indy7"]
    named = {text for plan in plans for text in plan.split("'")[1::2]}
    assert named and [name for name in sorted(named) if CELL.find(name) is None] == []


@pytest.mark.parametrize("thing", CELL.objects, ids=lambda thing: thing.name)
def test_the_simulated_arm_reaches_all_of_the_bundled_cell(thing):
    above = ArmSkills(CELL)._above(thing)
    level = (*above[:2], max(above[2], CELL.travel_height), *above[3:])
    down = (*above[:2], thing.position[2] + thing.grip, *above[3:])
    high, low, bottom = (joints_for(pose, HOME) for pose in (level, above, down))
    assert all(way.duration < 6 for way in (joint_way(HOME, high, 40, 100),
                                            straight_way(high, low, 40, 100),
                                            straight_way(low, bottom, 40, 100)))  # fmt: skip
    assert math.dist(tool(bottom)[:3], down[:3]) < 1e-6
