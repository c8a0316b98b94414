"""The commands of ``timely-llm``, and the exit status that an error ends them with. Each command's
file imports what is slow (ROS, vLLM, tables) only when the command runs."""

from __future__ import annotations

from typing import Annotated

import typer

from timely_llm import __version__
from timely_llm.cli.bench import bench
from timely_llm.cli.calls import plan, robots, stop
from timely_llm.cli.demo import demo
from timely_llm.cli.exit_status import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_NO_PLANNER, EXIT_USAGE
from timely_llm.cli.profile import profile
from timely_llm.cli.record import record
from timely_llm.cli.replay import replay
from timely_llm.cli.report import report
from timely_llm.cli.serve import serve
from timely_llm.cli.sim_indy import sim_indy
from timely_llm.cli.sim_tello import sim_tello
from timely_llm.cli.top import top

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="Plans for a fleet of robots from one local vLLM, in segments that the robots' own "
    "progress resumes.",
    epilog="Exit status: 0 done, 1 failed, 2 used wrongly, 3 no planner, 130 interrupted.",
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"timely-llm {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version")
    ] = False,
) -> None:
    pass


for command in (serve, plan, robots, top, stop, demo, bench):
    app.command()(command)
app.command("sim-tello")(sim_tello)
app.command("sim-indy")(sim_indy)
app.command()(profile)
app.command()(record)
app.command()(replay)
app.command()(report)


def status_of(error: Exception) -> int | None:
    """The exit status for an error whose text says it all; None: it is a fault of ours."""
    from timely_llm.language.skills import SkillSetError
    from timely_llm.validation.reader import YamlError

    if isinstance(error, YamlError | SkillSetError | OSError):
        return EXIT_USAGE
    from timely_llm.cli.local_fleet import FleetError
    from timely_llm.ros.client import NoPlanner, PlannerError
    from timely_llm.system.processes import Interrupted

    statuses = {
        NoPlanner: EXIT_NO_PLANNER,
        PlannerError: EXIT_FAILED,
        FleetError: EXIT_FAILED,
        Interrupted: EXIT_INTERRUPTED,
    }
    return next((status for kind, status in statuses.items() if isinstance(error, kind)), None)
