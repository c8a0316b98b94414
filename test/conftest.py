"""Settings that every test shares."""

import os

import pytest
from hypothesis import HealthCheck, settings

# Read when torch is imported, which a test of the model's data may do before the engine's do.
os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")

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

SLOWEST_FIRST = ("ros", "launch", "engine", "robots", "live", "pure")
SDK_PORTS = ("test_tello", "test_sim_tello_udp")  # the SDK's port is one for the whole machine


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Where several workers run the tests (pytest-xdist), a file's are run by one of them."""
    items.sort(key=lambda item: SLOWEST_FIRST.index(item.path.parent.name))
    for item in items:
        group = "SDK ports" if item.path.stem.startswith(SDK_PORTS) else str(item.path)
        item.add_marker(pytest.mark.xdist_group(group))
