"""Arms for tests with the real SDK. The test files are left out, by name, where it is missing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest


@pytest.fixture
def make(tmp_path) -> Iterator[Callable[..., Any]]:
    """Make rigs that end with the test."""
    from indy_rig import Rig

    rigs: list[Any] = []

    def made(**parameters: Any) -> Any:
        rigs.append(Rig(tmp_path, **parameters))
        return rigs[-1]

    yield made
    for rig in rigs:
        rig.close()


@pytest.fixture
def rig(make: Callable[..., Any]) -> Any:
    """An arm at home, connected."""
    return make().connected()
