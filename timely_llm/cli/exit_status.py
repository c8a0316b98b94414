"""The exit status of ``timely-llm``; 0 is done."""

from __future__ import annotations

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_NO_PLANNER = 3
EXIT_INTERRUPTED = 130


def status_of(error: Exception) -> int | None:
    """The exit status for an error whose text says it all; None: it is a fault of ours."""
    from timely_llm.validation.reader import FileError

    if isinstance(error, FileError | OSError):
        return EXIT_USAGE
    from timely_llm.cli.local_fleet import FleetError
    from timely_llm.ros.client import NoPlanner, PlannerError
    from timely_llm.system.processes import Interrupted

    if isinstance(error, NoPlanner):
        return EXIT_NO_PLANNER
    if isinstance(error, PlannerError | FleetError):
        return EXIT_FAILED
    return EXIT_INTERRUPTED if isinstance(error, Interrupted) else None
