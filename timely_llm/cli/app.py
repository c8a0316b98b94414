"""The commands of ``timely-llm``, in the order of its help.

A command's file imports at its top what is quick. What is slow (ROS, vLLM, tables, YAML) is
imported when the command runs, so that help and wrong options are answered at once.
"""

from __future__ import annotations

from typing import Annotated

import typer

from timely_llm import __version__
from timely_llm.cli.bench import bench
from timely_llm.cli.console import say
from timely_llm.cli.demo import demo
from timely_llm.cli.eval import eval_
from timely_llm.cli.plan import plan
from timely_llm.cli.profile import profile
from timely_llm.cli.record import record
from timely_llm.cli.replay import replay
from timely_llm.cli.report import report
from timely_llm.cli.robots import robots
from timely_llm.cli.serve import serve
from timely_llm.cli.sim_indy import sim_indy
from timely_llm.cli.sim_tello import sim_tello
from timely_llm.cli.stop import stop
from timely_llm.cli.top import top

COMMANDS = (
    *(serve, plan, robots, top, stop, demo, bench),
    *(sim_tello, sim_indy, profile, record, replay, report),
)

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="Plans for a fleet of robots from one local vLLM, in segments that the robots' own "
    "progress resumes.",
    epilog="Exit status: 0 done, 1 failed, 2 used wrongly, 3 no planner, 130 interrupted.",
)
for command in COMMANDS:
    app.command()(command)  # sim_tello becomes sim-tello
app.command("eval")(eval_)


def _version(wanted: bool) -> None:
    if wanted:
        say(f"timely-llm {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version")
    ] = False,
) -> None:
    pass
