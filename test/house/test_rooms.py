"""The rules of the house, read from the folders: which room may import which, and what stays pure.

An arrow is an import, wherever it stands: at the top of a file, inside a function, or under
``TYPE_CHECKING``.
"""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from timely_llm.core.request import Request

ROOT = Path(__file__).parents[2]

#: From the top floor down: a room imports rooms below it, never one above.
ROOMS = (
    "timely_llm/cli",
    "timely_llm/evaluation",
    "robot_adapters",
    "robot_adapters/tello",
    "robot_adapters/indy7",
    "robot_adapters/simulated",
    "timely_llm/ros",
    "timely_llm/live",
    "timely_llm/recording",
    "timely_llm/bench",
    "timely_llm/simulation",
    "timely_llm/engine",
    "timely_llm/core",
    "robot_adapters/executor",
    "timely_llm/policies",
    "timely_llm/estimation",
    "timely_llm/prompts",
    "timely_llm/language",
    "timely_llm/protocols",
    "timely_llm/validation",
    "timely_llm/system",
    "timely_llm",
)

#: Rooms without ROS, vLLM, torch, SDKs, clocks, threads, processes and random numbers of their own.
PURE = (
    "timely_llm/evaluation",
    "timely_llm/simulation",
    "timely_llm/core",
    "robot_adapters/executor",
    "timely_llm/policies",
    "timely_llm/estimation",
    "timely_llm/prompts",
    "timely_llm/language",
    "timely_llm/protocols",
    "timely_llm/validation",
)

FORBIDDEN = {
    *("rclpy", "launch", "launch_ros", "ament_index_python", "rosidl_runtime_py", "rosbags"),
    *("builtin_interfaces", "std_msgs", "std_srvs", "diagnostic_msgs", "unique_identifier_msgs"),
    *("geometry_msgs", "nav_msgs", "ray"),
    *("vllm", "torch", "transformers", "xgrammar", "djitellopy", "neuromeka", "grpc"),
    *("time", "datetime", "threading", "_thread", "asyncio", "multiprocessing", "concurrent"),
    *("subprocess", "socket", "selectors", "signal", "sched", "uuid", "secrets"),
}
RUNS_TEXT = {"eval", "exec", "__import__"}
READS_TEXT = {"json.load", "json.loads", "yaml.load", "yaml.safe_load", "yaml.compose"}
#: The reader, and who reads what comes with the package or was written in the same line.
READERS = {
    "timely_llm/validation/reader.py",
    "timely_llm/simulation/workloads/tasks.py",
    "timely_llm/ros/planner_factory.py",
}
ONLY_RANDOM_CLASS = "random.Random"  # a seed is an argument; the module's own state is a clock
GENERATED = ("timely_llm.msg", "timely_llm.srv", "timely_llm.action")


@cache
def files() -> tuple[str, ...]:
    """Every Python file of the two packages, from the root."""
    paths = [
        path for top in ("timely_llm", "robot_adapters") for path in ROOT.glob(f"{top}/**/*.py")
    ]
    return tuple(sorted(path.relative_to(ROOT).as_posix() for path in paths))


@cache
def tree(path: str) -> ast.Module:
    return ast.parse((ROOT / path).read_text(encoding="utf-8"))


def imports(module: ast.Module) -> Iterator[str]:
    """Dotted names that a module imports, wherever in it."""
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0 and node.module, "relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def file_of(name: str) -> str | None:
    """The file of ours that a dotted name is, or lies in; None: not ours, or generated."""
    if not name.startswith(("timely_llm.", "robot_adapters.")) or name.startswith(GENERATED):
        return None
    for dotted in (name, name.rpartition(".")[0]):
        place = dotted.replace(".", "/")
        for path in (f"{place}.py", f"{place}/__init__.py"):
            if path in files():
                return path
    return None


@cache
def arrows(path: str) -> frozenset[str]:
    """The files of ours that a file imports."""
    found = {file_of(name) for name in imports(tree(path))}
    return frozenset(found - {None, path, "timely_llm/__init__.py"})


def room(path: str) -> str:
    """The room that a file is in: the innermost folder that has a name in ``ROOMS``."""
    return next(
        place for place in sorted(ROOMS, key=len, reverse=True) if path.startswith(f"{place}/")
    )


def floor(path: str) -> int:
    """Counts from the top. What adapters are made of lies below those that are here."""
    if path in ("robot_adapters/adapter.py", "robot_adapters/perception.py"):
        return ROOMS.index("robot_adapters/executor")
    return ROOMS.index(room(path))


def test_every_folder_is_a_room_with_a_floor():
    folders = {Path(path).parent.as_posix() for path in files()}
    inner = {place for place in folders if place not in ROOMS}
    assert inner == {"timely_llm/simulation/workloads"}
    assert {path for path in files() if room(path) == "timely_llm"} == {
        *("timely_llm/__init__.py", "timely_llm/paths.py"),
    }


@pytest.mark.parametrize("path", files())
def test_arrows_point_down(path):
    assert [to for to in sorted(arrows(path)) if floor(to) < floor(path)] == []


def test_no_files_import_each_other_in_a_circle():
    graph = {path: arrows(path) for path in files()}
    try:
        tuple(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


@pytest.mark.parametrize("path", [path for path in files() if path.startswith("timely_llm/")])
def test_of_robots_only_their_executor_is_known_below_the_rooms_that_have_them_move(path):
    if room(path) in ("timely_llm/cli", "timely_llm/evaluation"):
        return
    robots = [to for to in arrows(path) if to.startswith("robot_adapters/")]
    assert [to for to in robots if room(to) != "robot_adapters/executor"] == []


@pytest.mark.parametrize("path", files())
def test_only_the_command_line_knows_the_command_line(path):
    if room(path) != "timely_llm/cli":
        assert [to for to in arrows(path) if room(to) == "timely_llm/cli"] == []


@pytest.mark.parametrize("path", files())
def test_only_one_file_touches_the_internals_of_vllm(path):
    inner = [name for name in imports(tree(path)) if name.startswith("vllm.v1.core")]
    assert inner == [] or path == "timely_llm/engine/vllm_scheduler.py"


def faults(module: ast.Module) -> set[str]:
    """What a module does that a pure one must not."""
    names = set(imports(module))
    found = {
        name for name in names if name.split(".")[0] in FORBIDDEN or name.startswith(GENERATED)
    }
    found |= {name for name in names if (file_of(name) or "").startswith("timely_llm/system/")}
    calls = {ast.unparse(node.func) for node in ast.walk(module) if isinstance(node, ast.Call)}
    found |= {name for name in calls if name.startswith("random.") and name != ONLY_RANDOM_CLASS}
    return found | calls & {"sleep", "perf_counter", "monotonic"}


@pytest.mark.parametrize("path", [path for path in files() if room(path) in PURE])
def test_a_pure_room_stays_pure(path):
    assert faults(tree(path)) == set()


@pytest.mark.parametrize("path", files())
def test_no_text_is_run_as_code(path):
    calls = {ast.unparse(node.func) for node in ast.walk(tree(path)) if isinstance(node, ast.Call)}
    assert calls & RUNS_TEXT == set()
    assert calls & READS_TEXT == set() or path in READERS
    if room(path) == "timely_llm/cli" and path != "timely_llm/cli/console.py":
        assert "print" not in calls, "say() lets no words steer the terminal"


@pytest.mark.parametrize(
    ("text", "bad"),
    [
        ("import time", True),
        ("from time import monotonic", True),
        ("def f():\n    import rclpy.node", True),
        ("from timely_llm.msg import Segment", True),
        ("from timely_llm import msg", True),
        ("import torch.nn as nn", True),
        ("import math, threading", True),
        ("import random\nrandom.random()", True),
        ("from timely_llm.system.processes import Interrupt", True),
        ("import random\nrandom.Random(1)", False),
        ("import math\nfrom timely_llm.protocols.utility import Urgency", False),
        ("from timely_llm.core import events as ev", False),
    ],
)
def test_the_check_sees_what_it_should(text, bad):
    assert bool(faults(ast.parse(text))) is bad


def test_an_arrow_is_seen_wherever_it_stands():
    text = "if TYPE_CHECKING:\n    from timely_llm.core.planner import Planner\n"
    assert [file_of(name) for name in imports(ast.parse(text))] == ["timely_llm/core/planner.py"]
    text = "def f():\n    from timely_llm.core import planner"
    assert [file_of(name) for name in imports(ast.parse(text))] == ["timely_llm/core/planner.py"]


OWNERS = ("timely_llm/core/request.py", "timely_llm/core/state.py")


@pytest.mark.parametrize("path", [p for p in files() if p.startswith("timely_llm/core/")])
def test_only_its_owners_set_a_field_of_a_request(path):
    """What happens to a request is written in one place: others call its transitions."""
    fields = {field.name for field in dataclasses.fields(Request)}
    targets = [
        target
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
    ]
    parts = [part for target in targets for part in ast.walk(target)]
    found = [
        ast.unparse(part)
        for part in parts
        if isinstance(part, ast.Attribute) and part.attr in fields
        if ast.unparse(part.value) not in ("self", "probe")  # a Probe is no Request
    ]
    assert found == [] or path in OWNERS
