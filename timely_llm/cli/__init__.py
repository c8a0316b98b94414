"""The ``timely-llm`` command: how it starts and ends. Each command has a file of its own here; the
files without one say in their first lines what several of them share.

Exit status: 0 done, 1 failed, 2 used wrongly, 3 no planner, 130 interrupted.
"""

from __future__ import annotations

import os
import signal
import sys

from timely_llm.cli.exit_status import EXIT_FAILED, EXIT_INTERRUPTED, status_of


def main() -> int:
    """Run the command line; returns the exit status."""
    # Before anything slow is imported: Ctrl-C ends the command without a word at any moment.
    # Commands with something to put in order take the signal over.
    signal.signal(signal.SIGINT, lambda *_: os._exit(EXIT_INTERRUPTED))
    from timely_llm.cli.app import app

    try:
        app(prog_name="timely-llm")  # ends with SystemExit, whatever the outcome
    except BrokenPipeError:  # the reader of our output has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except Exception as error:
        status = status_of(error)
        if status is None:
            raise
        if str(error):
            from timely_llm.cli.console import say

            say(f"timely-llm: {error}", error=True)
        return status
    return EXIT_FAILED
