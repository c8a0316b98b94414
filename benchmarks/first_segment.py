"""From the goal to the first segment at the robot, through ROS and on the bare engine."""

from __future__ import annotations

import subprocess
import sys
import time

from benchmarks.domain import separate
from benchmarks.figures import Figure, Report
from benchmarks.generation import bundled_model, running
from benchmarks.stats import difference, milliseconds, summary

TARGET = 5e-3  # s
KIND = "tello"
PLANNER = "import sys; from timely_llm.ros.planner_node import main; sys.exit(main())"


def run(pairs: int = 200) -> Report:
    """Triples in turn: bare engine, through ROS, bare engine again (A, B, A')."""
    separate()
    model = bundled_model()
    command = [sys.executable, "-c", PLANNER, "--ros-args", "-p", f"model:={model}"]
    command += ["-p", "heartbeat_timeout:=600.0"]  # the robot is mute while the bare engine loads
    planner = subprocess.Popen(command)
    try:
        times = _measure(model, pairs)
    finally:
        planner.terminate()
        planner.wait()
    beyond = difference(times["B"], times["A"])
    same = difference(times["A'"], times["A"])
    bare, ros = summary(times["A"]), summary(times["B"])
    figures = [
        Figure("bare engine: median, mean, p99", milliseconds(bare)),
        Figure("through ROS: median, mean, p99", milliseconds(ros)),
        Figure("A/A: median difference, ms", str(_in_ms(same))),
        Figure(
            "through ROS over the bare engine, ms",
            str(_in_ms(beyond)),
            f"at most {TARGET * 1e3:g}",
            beyond.value <= TARGET,
        ),
    ]
    return Report(f"First segment at the robot: {pairs} triples", figures, {"times_s": times})


def _in_ms(interval):
    return type(interval)(interval.value * 1e3, interval.low * 1e3, interval.high * 1e3)


def _measure(model: str, pairs: int) -> dict[str, list[float]]:
    from benchmarks.robots import InstantRobots

    robots = InstantRobots(1, KIND)
    times: dict[str, list[float]] = {"A": [], "B": [], "A'": []}
    with running(model, KIND) as bench:
        robots.wait_for_planner()
        ways = {
            "A": bench.first_segment,
            "B": lambda instruction: _through_ros(robots, instruction),
            "A'": bench.first_segment,
        }
        for number in range(-3, pairs):
            instruction = (
                f"[A] Move forward {100 + number} cm, then turn left {number + 30} degrees."
            )
            names = list(ways)
            for name in names[number % 3 :] + names[: number % 3]:
                elapsed = ways[name](instruction)
                if number >= 0:  # the first ones warm up
                    times[name].append(elapsed)
    robots.close()
    return times


def _through_ros(robots, instruction: str) -> float:
    """s from sending the goal until its first segment is at the robot."""
    arrivals: list[float] = []
    results: list[object] = []
    robots.arrived = lambda robot_id, segment: arrivals.append(time.perf_counter())
    begun = time.perf_counter()
    robots.goal("r0", instruction, results.append)
    robots.until(lambda: bool(results))
    if not arrivals:
        raise RuntimeError(f"no segment came: {results[0].error_msg}")
    return arrivals[0] - begun
