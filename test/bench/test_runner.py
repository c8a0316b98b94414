"""Work on several processes: all of it is done, and the processes end with an error or a signal."""

import os
import signal

import pytest

from timely_llm.bench.runner import run_jobs
from timely_llm.system.processes import Interrupt, Interrupted


def square(number):
    if number < 0:
        raise ValueError("a negative number")
    return number * number


def test_jobs_are_done_in_whatever_order_and_all_of_them():
    found = {}
    with Interrupt() as interrupt:
        run_jobs(square, range(10), 3, interrupt, found.__setitem__)
    assert found == {i: i * i for i in range(10)}


def test_what_a_job_raises_is_raised_and_the_processes_end():
    with Interrupt() as interrupt, pytest.raises(ValueError, match="a negative number"):
        run_jobs(square, [1, -1, 2], 2, interrupt, lambda i, value: None)


def wait_for_ever(number):
    signal.pause()


def test_an_interrupt_ends_jobs_that_still_run():
    """The signal comes while both processes are in the middle of their work."""
    with Interrupt() as interrupt:
        signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGINT))
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(Interrupted):
            run_jobs(wait_for_ever, [1, 2], 2, interrupt, lambda i, value: None)
