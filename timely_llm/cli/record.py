"""``timely-llm record``: the topics of a planner and its robots, in a rosbag2 bag."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from timely_llm.cli.console import say
from timely_llm.cli.options import Namespace


def record(
    out: Annotated[
        Path | None,
        typer.Option(help="folder of the new bag; default: timely_llm_ and the time"),
    ] = None,
    namespace: Namespace = "",
) -> None:
    """Record what replay and report need, until Ctrl-C: no ROS tools needed.

    The bag (mcap) is also one for `ros2 bag`. Robots are recorded as they register.
    """
    from datetime import datetime

    from timely_llm.recording.bag import BagError
    from timely_llm.ros.recorder import record as run

    folder = out or Path(f"timely_llm_{datetime.now():%Y_%m_%d-%H_%M_%S}")
    try:
        run(folder, namespace, say)
    except BagError as error:
        raise typer.BadParameter(str(error), param_hint="--out") from error
