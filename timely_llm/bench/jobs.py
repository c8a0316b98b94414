"""Work on several processes, which end with this one. Linux and macOS."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from typing import TypeVar

from timely_llm.system.processes import Interrupt, die_with_parent

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
_POLL = 0.2  # s between two looks at the interrupt


def run_jobs(
    work: Callable[[_Item], _Result],
    items: Sequence[_Item],
    processes: int,
    interrupt: Interrupt,
    done: Callable[[int, _Result], None],
) -> None:
    """``done(i, work(items[i]))`` for every item, in whatever order they are ready.

    Raises ``Interrupted`` as soon as ``interrupt`` is requested, and what ``work`` raises; the
    processes have ended then.
    """
    if not items:
        return
    interrupt.check()
    others = multiprocessing.active_children()
    context = multiprocessing.get_context("fork")  # what is imported and registered here is there
    pool = ProcessPoolExecutor(
        min(processes, len(items)), context, initializer=_begin, initargs=(os.getpid(),)
    )
    waiting: dict[Future[_Result], int] = {
        pool.submit(work, item): i for i, item in enumerate(items)
    }
    try:
        while waiting:
            ready, _ = wait(waiting, _POLL, FIRST_COMPLETED)
            for future in ready:
                done(waiting.pop(future), future.result())
            interrupt.check()
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in multiprocessing.active_children():
            if process not in others:
                process.terminate()
        raise
    finally:
        pool.shutdown()


def _begin(parent: int) -> None:
    """A worker: Ctrl-C is its parent's, which ends it; so does its parent's end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    die_with_parent(parent)
