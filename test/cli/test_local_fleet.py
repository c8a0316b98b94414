"""What the environment of a process of another virtual environment contains, and what not."""

import sys

import pytest

from timely_llm.cli.fleet_file import Fleet, RobotSpec
from timely_llm.cli.local_fleet import FleetError, LocalFleet
from timely_llm.system.processes import ProcessGroup, environment_of

OURS, THEIRS = "/x/.venv", "/x/.venv-indy"


@pytest.fixture
def ours(monkeypatch):
    monkeypatch.setattr(sys, "prefix", OURS)
    monkeypatch.setattr(sys, "base_prefix", "/usr")


def test_paths_of_this_environment_become_those_of_that(ours):
    told = environment_of(
        f"{THEIRS}/bin/python",
        {
            "PATH": f"/x/install/bin:{OURS}/bin:/usr/bin",
            "LD_LIBRARY_PATH": f"/x/install/lib:{OURS}/lib:{OURS}/lib/python3.11/libs",
            "PYTHONPATH": f"/x:{OURS}/extra",
            "AMENT_PREFIX_PATH": f"/x/install:{OURS}",
            "CMAKE_PREFIX_PATH": OURS,
            "_ROS_WHEELS_BOOTSTRAP_COMPLETE": "1",
            "VIRTUAL_ENV": OURS,
            "ROS_DOMAIN_ID": "7",
        },
    )
    assert told == {
        "PATH": f"{THEIRS}/bin:/x/install/bin:/usr/bin",
        "LD_LIBRARY_PATH": "/x/install/lib",
        "PYTHONPATH": "/x",
        "AMENT_PREFIX_PATH": f"{THEIRS}:/x/install",
        "ROS_DOMAIN_ID": "7",
    }


def test_a_folder_of_a_similar_name_is_another(ours):
    told = environment_of(f"{THEIRS}/bin/python", {"PYTHONPATH": f"{OURS}-more:{THEIRS}/lib"})
    assert told["PYTHONPATH"] == f"{OURS}-more:{THEIRS}/lib"


def test_paths_of_the_machine_stay(monkeypatch):
    monkeypatch.setattr(sys, "prefix", "/usr")
    monkeypatch.setattr(sys, "base_prefix", "/usr")
    told = environment_of(f"{THEIRS}/bin/python", {"PATH": "/usr/bin", "PYTHONPATH": "/usr/lib"})
    assert (told["PATH"], told["PYTHONPATH"]) == (f"{THEIRS}/bin:/usr/bin", "/usr/lib")


def test_a_missing_interpreter_is_named_before_anything_starts(tmp_path):
    robot = RobotSpec("arm", "indy7", "arm", python=str(tmp_path / "bin/python"))
    with ProcessGroup(tmp_path, {}) as children:
        with pytest.raises(FleetError, match="^arm: there is no interpreter .*make indy"):
            LocalFleet(Fleet((robot,)), children).start({})
        assert children.children == []
