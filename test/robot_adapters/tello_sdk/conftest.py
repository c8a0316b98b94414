"""Drones for tests with the real SDK; left out by name where it is not installed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("djitellopy", reason="djitellopy is not installed")

from tello_rig import Rig  # noqa: E402


@pytest.fixture
def make() -> Iterator[Callable[..., Rig]]:
    """Make rigs that end with the test."""
    rigs: list[Rig] = []

    def made(*arguments: Any, **parameters: Any) -> Rig:
        rigs.append(Rig(*arguments, **parameters))
        return rigs[-1]

    yield made
    for rig in rigs:
        rig.close()


@pytest.fixture
def rig(make: Callable[..., Rig]) -> Rig:
    """A drone on the ground, connected."""
    return make().connected()
