"""``timely-llm demo``: a fleet of processes plays a script of instructions, under a policy and then
under the baseline, and both are summed up side by side."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.text import Text

from timely_llm.cli.demo_display import Display, open_display
from timely_llm.cli.fleet_file import Fleet, Value, parameters_of
from timely_llm.cli.local_fleet import LocalFleet, child_environment, claim_domain, environment
from timely_llm.cli.script_file import Instruction, Script
from timely_llm.cli.tables import comparison_table, summary_table, title_of
from timely_llm.live.fleet_state import MISSED, FleetState, PlanTrack
from timely_llm.live.summary import EngineName, PlanRecord, RunReport, report_json
from timely_llm.protocols.messages import Execution, PlanEvent, PlannerStatus
from timely_llm.ros.client import PlannerClient, PlannerError, PlanRequest
from timely_llm.system.processes import Interrupt, Interrupted, ProcessGroup
from timely_llm.validation.outgoing import json_text, visible

BASELINE = "vllm"
PATIENCE = 180.0  # s, from the last instruction until every goal must have its result
LATE_NEWS = 1.2  # s; the planner's status, which counts what the engine did, comes every 0.5 s


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """What to fly and how; ``planner`` are further parameters of the planner node. ``record`` is
    the folder of the bags, one for each policy."""

    fleet: Fleet
    script: Script
    policy: str = "least_loss"
    pace: str = "none"
    planner: tuple[tuple[str, Value], ...] = ()
    baseline: bool = True
    json_file: Path | None = None
    log_folder: Path | None = None
    record: Path | None = None


def with_seed(fleet: Fleet, seed: int) -> Fleet:
    """The fleet with seeds of its robots' adapters counted up from ``seed``."""
    robots = tuple(
        replace(robot, parameters={**robot.parameters, "seed": seed + index})
        if any(parameter.name == "seed" for parameter in parameters_of(robot.adapter))
        else robot
        for index, robot in enumerate(fleet.robots)
    )
    return replace(fleet, robots=robots)


def run_demo(options: DemoOptions, console: Console, interrupt: Interrupt) -> int:
    """Fly, print the tables, write the report; the exit status is 1 where a goal ended without a
    result or with a code that the script does not expect."""
    folder = options.log_folder or Path(tempfile.mkdtemp(prefix="timely-llm-demo-"))
    folder.mkdir(parents=True, exist_ok=True)
    domain, claim = claim_domain()
    policies = [options.policy] + [BASELINE] * options.baseline
    reports, problems = [], []
    keep = options.log_folder is not None
    try:
        with environment(child_environment(domain, folder)):
            for number, policy in enumerate(policies, 1):
                part = f"part {number} of {len(policies)}"
                console.print(
                    f"{part}: starting the planner ({policy}) and {len(options.fleet.robots)} "
                    f"robots in ROS domain {domain}"
                )
                report, faults = _fly(options, policy, folder / str(number), console, interrupt)
                reports.append(report)
                problems += [f"{policy}: {fault}" for fault in faults]
        _show(options, reports, problems, console)
    except BaseException as error:
        keep = keep or not isinstance(error, Interrupted)
        raise
    finally:
        if claim is not None:
            claim.close()
        if keep or problems:
            console.print(f"what the processes wrote is in {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    return 1 if problems else 0


def _show(
    options: DemoOptions, reports: list[RunReport], problems: list[str], console: Console
) -> None:
    for report in reports:
        console.print(summary_table(report, console.width))
    if len(reports) > 1:
        console.print(comparison_table(reports))
    if options.json_file is not None:
        whole = report_json(reports[0], reports[1] if len(reports) > 1 else None)
        options.json_file.write_text(json_text(whole, indent=2) + "\n")
        console.print(f"report: {options.json_file}")
    for problem in problems:
        console.print(Text.assemble(("problem", "red"), f": {visible(problem)}"))


def _fly(
    options: DemoOptions, policy: str, folder: Path, console: Console, interrupt: Interrupt
) -> tuple[RunReport, list[str]]:
    """One run of the script with fresh processes; its report, and what went wrong in words."""
    folder.mkdir(parents=True, exist_ok=True)
    parameters = {"policy": policy, "pace": options.pace, **dict(options.planner)}
    with PlannerClient(name="timely_llm_demo") as client, ProcessGroup(folder) as children:
        interrupt.children = children
        try:
            if client.wait(lambda: client.status is not None, 1.0, interrupt.check):
                raise PlannerError(
                    "another planner is in this ROS domain: leave ROS_DOMAIN_ID unset, or give "
                    "another"
                )
            processes = LocalFleet(options.fleet, children)
            begun = time.monotonic()
            recorder = None
            if options.record is not None:
                recorder = processes.record(options.record / policy)
            processes.start(parameters)
            processes.wait_ready(client, interrupt.check)
            if recorder is not None:
                processes.wait_recorded(recorder, client, interrupt.check)
            console.print(f"all are ready after {time.monotonic() - begun:.1f} s")

            def check() -> None:
                interrupt.check()
                processes.check()

            return _play(options, client, check, console)
        except Interrupted:
            console.print("interrupted: ending all processes (Ctrl-C again kills them at once)")
            raise


def _play(
    options: DemoOptions, client: PlannerClient, check: Callable[[], None], console: Console
) -> tuple[RunReport, list[str]]:
    status, fleet = _status(client), FleetState()
    title = title_of(status.policy, status.pace, status.model)
    with open_display(console, fleet, options.fleet.ids, title) as display:
        player = Player(options, client, fleet, display)
        player.play(check)
    status = _status(client)
    engine = EngineName.of(status.engine, status.model)
    recomputed = status.prompt_tokens_recomputed
    report = RunReport(status.policy, status.pace or "none", engine, player.records(), recomputed)
    return report, player.problems()


def _status(client: PlannerClient) -> PlannerStatus:
    assert client.status is not None, "it was heard when it became ready"
    return client.status


class Player:
    """Sends a script's instructions on time and follows what becomes of them in ``fleet``."""

    def __init__(
        self, options: DemoOptions, client: PlannerClient, fleet: FleetState, display: Display
    ) -> None:
        self.script, self.client = options.script, client
        self.fleet, self.display = fleet, display
        self.sent: list[tuple[Instruction, PlanRequest, PlanTrack]] = []
        self._start = 0.0
        client.watch_events(self._event)
        for robot in options.fleet.robots:
            client.watch_execution(robot.namespace, partial(self._execution, robot.robot_id))

    def now(self) -> float:
        """s since the script began."""
        return time.monotonic() - self._start

    def play(self, check: Callable[[], None]) -> None:
        """Play the script until every goal has its result, or patience ends."""
        self._start = time.monotonic()
        pending = list(self.script.instructions)
        deadline = max(item.at for item in pending) + PATIENCE
        while (pending or not self._all_ended()) and self.now() < deadline:
            check()
            while pending and pending[0].at <= self.now():
                self._send(pending.pop(0))
            self._cancel_due()
            self.client.spin()
            self.display.tick(self.now())
        self.client.wait(lambda: False, LATE_NEWS, check)
        self.display.tick(self.now())

    def records(self) -> tuple[PlanRecord, ...]:
        """All goals that have their result, in the order they were sent."""
        return tuple(
            PlanRecord(plan.goal, request.result, tuple(plan.segments))
            for _, request, plan in self.sent
            if request.result is not None
        )

    def problems(self) -> list[str]:
        """What went other than the script expects, in words."""
        faults = []
        for item, request, plan in self.sent:
            where = f"{item.goal.robot_id}: {item.goal.instruction!r}"
            if request.result is None:
                faults.append(f"{where} has no result")
            elif request.result.error_code not in item.expect:
                code, words = request.result.error_code.name, request.result.error_msg
                expected = " or ".join(code.name for code in item.expect)
                faults.append(f"{where} ended with {code} ({words}), expected {expected}")
            elif request.result.num_segments != len(plan.segments) or MISSED in plan.segments:
                faults.append(f"{where}: the planner's events of it are incomplete")
        return faults

    def _all_ended(self) -> bool:
        return all(request.ended for _, request, _ in self.sent)

    def _send(self, item: Instruction) -> None:
        request = self.client.send(item.goal)
        plan = self.fleet.sent(request.plan_id, item.goal, self.now())
        self.sent.append((item, request, plan))
        self.display.sent(item, self.now())

    def _cancel_due(self) -> None:
        for item, request, _ in self.sent:
            due = self.now() >= item.at + item.cancel_after
            if due and not request.cancel_requested and not request.ended:
                request.cancel()

    def _event(self, event: PlanEvent) -> None:
        if any(request.plan_id == event.plan_id for _, request, _ in self.sent):
            self.fleet.follow_event(event, self.now())
        self.display.event(event, self.now())

    def _execution(self, robot_id: str, report: Execution) -> None:
        self.fleet.follow_execution(robot_id, report, self.now())
