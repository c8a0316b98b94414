"""A browser for the tests of the page; they are skipped where there is none."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from chromium import NAMES, Chromium, find_browser


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    found = find_browser()
    if found is None:
        pytest.skip(f"no browser: none of {', '.join(NAMES)} is on the PATH, nor $CHROMIUM set")
    chromium = Chromium(tmp_path_factory.mktemp("browser") / "profile", found)
    yield chromium
    chromium.close()
    assert chromium.console == []  # no error, no breach of the page's policy
