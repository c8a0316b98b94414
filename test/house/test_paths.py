"""Where files of the package lie, in a checkout and where it is installed."""

from pathlib import Path

import pytest

import timely_llm.paths
from timely_llm.paths import data, share


def test_share_of_a_checkout_and_of_an_install_space(tmp_path, monkeypatch):
    assert share("package.xml").is_file()
    package = tmp_path / "lib" / "python3.11" / "site-packages" / "timely_llm"
    folder = tmp_path / "share" / "timely_llm"
    package.mkdir(parents=True)
    monkeypatch.setattr(timely_llm.paths, "_PACKAGE", package)
    with pytest.raises(FileNotFoundError, match="share/timely_llm"):
        share("config")
    folder.mkdir(parents=True)
    assert share("config", "prompts") == folder / Path("config/prompts")
    assert data("tasks.json") == package / "data" / "tasks.json"


def test_published_data_lies_in_the_package():
    assert data("lrtrace_tasks.json").is_file()
