"""Settings that every test shares."""

import fcntl
import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# Read when torch is imported, which a test of the model's data may do before the engine's do.
os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")

# Who runs in the background of a shell script ignores SIGINT, and so would every node started here.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# No deadlines: on a busy machine they would measure the machine. In CI the same examples always;
# `HYPOTHESIS_PROFILE=thorough make test` takes its time.
settings.register_profile(
    "timely_llm",
    deadline=None,
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
)
settings.register_profile("ci", settings.get_profile("timely_llm"), derandomize=True)
settings.register_profile("thorough", settings.get_profile("timely_llm"), max_examples=1000)
settings.load_profile(
    os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "timely_llm")
)

SLOWEST_FIRST = (
    "ros",
    "launch",
    "tello_sdk",
    "engine",
    "bench",
    "indy7_sdk",
    "live",
    "cli",
    "core",
)


ONE_AFTER_THE_OTHER = ("tello_sdk",)
"""Folders whose files cannot run at the same time: the SDK fixes the ports."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Where several workers run the tests (pytest-xdist), the long files are not the last."""
    items.sort(key=_place)


def _place(item: pytest.Item) -> int:
    folder = item.path.parent.name
    return SLOWEST_FIRST.index(folder) if folder in SLOWEST_FIRST else len(SLOWEST_FIRST)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """One worker runs the tests of a file, or of a folder in ``ONE_AFTER_THE_OTHER``."""
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            path = Path(nodeid.partition("::")[0])
            together = path.parent.name in ONE_AFTER_THE_OTHER
            return str(path.parent if together else path)

    return Scheduling(config, log)


@pytest.fixture(scope="module")
def sdk_ports() -> Iterator[None]:
    """The ports that a robot's SDK fixes are there once on a machine: one file has them."""
    with Path(tempfile.gettempdir(), "timely_llm_sdk_ports.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
