"""Our own share of an engine step: schedule, detect, check, dispatch and publish."""

from __future__ import annotations

import json
import subprocess
import sys
import threading

from benchmarks.figures import Figure, Report
from benchmarks.generation import bundled_model
from benchmarks.robots import separate
from benchmarks.stats import difference, summary

ROBOTS = 16
TARGET = 0.2e-3  # s


def run(goals: int = 10) -> Report:
    """The planner node in this process, 16 robots and their clients in another one."""
    separate()
    import rclpy

    from timely_llm.ros.engine_thread import EngineThread
    from timely_llm.ros.guard import GuardedExecutor
    from timely_llm.ros.planner_node import PlannerNode

    samples: list[tuple[int, float, float]] = []  # live plans, step s, our share s

    class MeasuredThread(EngineThread):
        def _measured(self, planner, step_time, overhead):
            samples.append((len(planner.state.generating), step_time, overhead))
            super()._measured(planner, step_time, overhead)

    class MeasuredNode(PlannerNode):
        Thread = MeasuredThread

    rclpy.init(args=["--ros-args", "-p", f"model:={bundled_model()}", "-p", f"max_batch:={ROBOTS}"])
    executor = GuardedExecutor()
    node = MeasuredNode(executor)
    node.trigger_configure()
    if node.failure is not None:
        raise node.failure
    node.trigger_activate()
    executor.add_node(node)
    command = [sys.executable, "-m", "benchmarks.robots", str(ROBOTS), str(goals)]
    load = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    printed: list[str] = []

    def wait_for_the_robots() -> None:
        printed.append(load.communicate()[0])
        node.finish()

    threading.Thread(target=wait_for_the_robots, daemon=True).start()
    executor.spin_until_future_complete(node.done, 1e9)
    node.destroy_node()
    rclpy.shutdown()
    if load.returncode:
        raise RuntimeError("the robots failed")
    accepted = summary(json.loads(printed[0]))
    full = [(step, own) for live, step, own in samples if live == ROBOTS]
    steps, own = summary([step for step, _ in full]), summary([own for _, own in full])
    shares = [share * 1e3 for _, share in full]
    half = len(shares) // 2
    same = difference(shares[1::2][:half], shares[::2][:half])
    figures = [
        Figure("engine steps with 16 live generations", f"{own.count} of {len(samples)}"),
        Figure("engine step, median", f"{steps.median * 1e3:.3f} ms"),
        Figure(
            "our own share, mean",
            f"{own.mean * 1e3:.3f} ms",
            f"at most {TARGET * 1e3} ms",
            own.mean <= TARGET,
        ),
        Figure("our own share, median", f"{own.median * 1e3:.3f} ms"),
        Figure("A/A: odd steps over even ones, median, ms", str(same)),
        Figure("our own share, p99", f"{own.p99 * 1e3:.3f} ms"),
        Figure(
            "goal accepted while the engine is busy: median, p99",
            f"{accepted.median * 1e3:.2f}, {accepted.p99 * 1e3:.2f} ms",
        ),
    ]
    return Report(f"Our own share of a step: {ROBOTS} robots", figures, {"samples": samples})
