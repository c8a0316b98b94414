"""Recordings that several files of tests read."""

from __future__ import annotations

import bag_cases
import pytest
from bag_cases import POLICIES, busy_fleet, recorded

from timely_llm.recording import bag
from timely_llm.recording.goals import goals_of


@pytest.fixture(scope="session")
def bags(tmp_path_factory):
    """The same goals, recorded under several policies; robots have clocks of their own."""
    folder = tmp_path_factory.mktemp("bags")
    return {
        policy: (
            sim := busy_fleet(policy),
            *recorded(sim, folder / policy, policy, robots_clock=1e6),
        )
        for policy in POLICIES
    }


@pytest.fixture(scope="session")
def shown(tmp_path_factory):
    """A busy fleet recorded under vllm: the recording and its goals."""
    folder = tmp_path_factory.mktemp("bags")
    path = bag_cases.record(busy_fleet("vllm"), folder / "busy", bag_cases.config("vllm"))
    recording = bag.read(path)
    return recording, goals_of(recording)
