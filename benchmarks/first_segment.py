"""From the goal to the first segment at the robot, through ROS and on the bare engine."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Any

from benchmarks.figures import Figure, Report
from benchmarks.generation import bundled_model, running
from benchmarks.robots import InstantRobots, separate
from benchmarks.stats import difference, milliseconds, summary

TARGET = 5e-3  # s
REST = 0.1  # s before each way: both begin on an engine that had nothing to do
KIND = "tello"
PLANNER = "import sys; from timely_llm.ros.planner_node import main; sys.exit(main())"


def run(pairs: int = 200) -> Report:
    """Bare engine and ROS in strict turn (A, B, A', B'): what ran before has had the processor's
    caches, so that whoever ran twice in a row would be faster."""
    separate()
    model = bundled_model()
    command = [sys.executable, "-c", PLANNER, "--ros-args", "-p", f"model:={model}"]
    command += ["-p", "heartbeat_timeout:=600.0"]  # the robot is mute while the bare engine loads
    planner = subprocess.Popen(command)
    try:
        times = _measure(model, -(-pairs // 2))
    finally:
        planner.terminate()
        planner.wait()
    bare, ros = times["A"] + times["A'"], times["B"] + times["B'"]
    beyond = difference(ros, bare)
    same = difference(times["A'"], times["A"])
    figures = [
        Figure("bare engine: median, mean, p99", milliseconds(summary(bare))),
        Figure("through ROS: median, mean, p99", milliseconds(summary(ros))),
        Figure("A/A: median difference, ms", str(_in_ms(same))),
        Figure(
            "through ROS over the bare engine, ms",
            str(_in_ms(beyond)),
            f"at most {TARGET * 1e3:g}",
            beyond.value <= TARGET,
        ),
    ]
    title = f"First segment at the robot: {len(ros)} pairs, each after {REST * 1e3:g} ms of rest"
    return Report(title, figures, {"times_s": times})


def _in_ms(interval):
    return type(interval)(interval.value * 1e3, interval.low * 1e3, interval.high * 1e3)


def _measure(model: str, rounds: int) -> dict[str, list[float]]:
    robots = InstantRobots(1, KIND)
    order = ("A", "B", "A'", "B'")
    times: dict[str, list[float]] = {name: [] for name in order}
    with running(model, KIND) as bench:
        robots.wait_for_planner()
        for number in range(-3, rounds):
            instruction = (
                f"[A] Move forward {100 + number} cm, then turn left {number + 30} degrees."
            )
            turn = 2 * (number % 2)
            for name in order[turn:] + order[:turn]:
                time.sleep(REST)
                if name in ("A", "A'"):
                    elapsed = bench.first_segment(instruction)
                else:
                    elapsed = _through_ros(robots, instruction)
                if number >= 0:  # the first ones warm up
                    times[name].append(elapsed)
    robots.close()
    return times


def _through_ros(robots: InstantRobots, instruction: str) -> float:
    """s from sending the goal until its first segment is at the robot."""
    arrivals: list[float] = []
    results: list[Any] = []
    robots.arrived = lambda robot_id, segment: arrivals.append(time.perf_counter())
    begun = time.perf_counter()
    robots.goal("r0", instruction, results.append)
    robots.until(lambda: bool(results))
    if not arrivals:
        raise RuntimeError(f"no segment came: {results[0].error_msg}")
    return arrivals[0] - begun
