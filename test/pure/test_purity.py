"""Pure files stay pure: what they import is read from their text and held against the design."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# Files that may import ROS, vLLM or torch, wait, start threads or read a clock.
EDGES = (
    "timely_llm/ros/",
    "timely_llm/engine/vllm_",
    *("timely_llm/cli.py", "timely_llm/command/"),
    *(f"timely_llm/evaluation/{name}.py" for name in ("real", "real_engine", "real_replay")),
    *("timely_llm/evaluation/loop_share.py", "timely_llm/evaluation/machine_speed.py"),
    "timely_llm/evaluation/bag",
    "timely_llm/live/server.py",
    *("robot_adapters/node", "robot_adapters/rover.py"),
    *(f"robot_adapters/tello/{name}.py" for name in ("adapter", "flight", "landing", "link")),
    *(f"robot_adapters/tello/{name}.py" for name in ("skills", "worker", "simulator")),
    *(f"robot_adapters/indy7/{name}.py" for name in ("adapter", "link", "simulator")),
)

# Libraries and standard modules of the edges.
FORBIDDEN = {
    *("rclpy", "launch", "launch_ros", "ament_index_python", "rosidl_runtime_py", "rosbags"),
    *("builtin_interfaces", "std_msgs", "std_srvs", "diagnostic_msgs", "unique_identifier_msgs"),
    *("geometry_msgs", "nav_msgs"),
    *("vllm", "torch", "transformers", "xgrammar", "djitellopy", "neuromeka", "grpc"),
    *("time", "datetime", "threading", "_thread", "asyncio", "multiprocessing", "concurrent"),
    *("subprocess", "socket", "selectors", "signal", "sched", "uuid", "secrets"),
}
ONLY_RANDOM_CLASS = "random.Random"  # a seed is an argument; the module's own state is a clock
MESSAGES = ("timely_llm.msg", "timely_llm.srv", "timely_llm.action")


def is_edge(path: str) -> bool:
    return path.startswith(EDGES)


def pure_files() -> list[str]:
    paths = [p.relative_to(ROOT).as_posix() for p in ROOT.glob("timely_llm/**/*.py")]
    paths += [p.relative_to(ROOT).as_posix() for p in ROOT.glob("robot_adapters/**/*.py")]
    return sorted(path for path in paths if not is_edge(path))


def imports(text: str) -> list[str]:
    """Dotted names that a module imports, wherever in it."""
    names = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative import"
            names.append(node.module)
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return names


def is_forbidden(name: str) -> bool:
    module = name.replace(".", "/")
    inner = f"{module}.py" if (ROOT / f"{module}.py").exists() else f"{module}/"
    return (
        name.split(".")[0] in FORBIDDEN
        or name.startswith(MESSAGES)
        or (name.startswith(("timely_llm.", "robot_adapters.")) and is_edge(inner))
    )


def calls(text: str) -> set[str]:
    """Names that a module calls: ``eval``, ``time.sleep``."""
    return {
        ast.unparse(node.func) for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)
    }


@pytest.mark.parametrize("path", pure_files())
def test_a_pure_file_imports_nothing_of_the_edges(path):
    names = imports((ROOT / path).read_text(encoding="utf-8"))
    assert [name for name in names if is_forbidden(name)] == []


@pytest.mark.parametrize("path", pure_files())
def test_a_pure_file_draws_no_numbers_of_its_own_and_runs_no_text(path):
    text = (ROOT / path).read_text(encoding="utf-8")
    made = calls(text)
    drawn = {name for name in made if name.startswith("random.") and name != ONLY_RANDOM_CLASS}
    assert drawn == set()
    assert made & {"eval", "exec", "__import__", "sleep", "perf_counter", "monotonic"} == set()


def test_the_list_of_pure_files_is_the_design_s():
    pure = set(pure_files())
    assert {
        *("timely_llm/planner.py", "timely_llm/plans.py", "timely_llm/utility.py"),
        *("timely_llm/horizon.py", "timely_llm/latency.py", "timely_llm/generation.py"),
        *("timely_llm/segment.py", "timely_llm/skills.py", "timely_llm/minispec.py"),
        *("timely_llm/policies/timely.py", "timely_llm/engine/base.py", "timely_llm/prompts.py"),
        *("timely_llm/engine/simulated.py", "robot_adapters/base.py", "robot_adapters/executor.py"),
        "robot_adapters/minispec.py",
    } <= pure
    assert "timely_llm/ros/conversions.py" not in pure


@pytest.mark.parametrize(
    ("text", "bad"),
    [
        ("import time", True),
        ("from time import monotonic", True),
        ("def f():\n    import rclpy.node", True),
        ("from timely_llm.msg import Segment", True),
        ("from timely_llm import msg", True),
        ("from timely_llm.ros.conversions import to_ros", True),
        ("from timely_llm.ros import conversions", True),
        ("import torch.nn as nn", True),
        ("import math, threading", True),
        ("import math\nfrom timely_llm.utility import Urgency", False),
        ("from timely_llm import events as ev", False),
    ],
)
def test_the_check_sees_what_it_should(text, bad):
    assert any(map(is_forbidden, imports(text))) is bad
