"""``timely-llm report``: a recorded bag as one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from timely_llm.cli.console import say
from timely_llm.cli.replay import Bag, BagNamespace
from timely_llm.validation.outgoing import visible


def report(
    bag: Bag,
    out: Annotated[
        Path | None, typer.Option(dir_okay=False, help="HTML file to write; default: BAG.html")
    ] = None,
    namespace: BagNamespace = None,
) -> None:
    """Show a recorded bag as one HTML page that needs nothing else.

    What every robot did, the engine's load, utility, response and waiting of every goal, and the
    worst moments with their cause.
    """
    from timely_llm.recording.bag import BagError, read
    from timely_llm.recording.goals import goals_of
    from timely_llm.recording.report import page

    try:
        recording = read(bag, namespace)
    except BagError as error:
        raise typer.BadParameter(visible(str(error)), param_hint="BAG") from error
    path = out or Path(f"{bag.absolute().name}.html")
    goals = goals_of(recording)
    path.write_text(page(recording, goals), encoding="utf-8")
    for note in recording.notes:
        say(f"note: {note}")
    say(f"{path}: {len(goals)} goals, {len(recording.robots)} robots")
