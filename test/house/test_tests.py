"""Tests lie as the code lies: the test of ``core/robots.py`` is ``test/core/test_robots*.py``."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

#: Pure rooms: each of their modules has a test file of its name.
PURE = ("timely_llm/simulation", "timely_llm/core", "robot_adapters/executor",
        "timely_llm/policies", "timely_llm/estimation", "timely_llm/prompts",
        "timely_llm/language", "timely_llm/protocols", "timely_llm/validation")  # fmt: skip

#: Modules without a test file of their own, and why.
NO_FILE = {
    "timely_llm/core/events.py": "values",
    "timely_llm/policies/base.py": "values",
    "timely_llm/protocols/engine.py": "values and a protocol; test/engine holds engines to it",
    "timely_llm/protocols/messages.py": "values",
    "timely_llm/language/lexer.py": "the first half of the parser: test_parser.py",
    "timely_llm/language/instructions.py": "what the parser compiles to, for the interpreter",
}

#: Folders of tests that are no room's, and what they are for.
OTHER = {
    "benchmarks": "benchmarks/",
    "house": "the rules of the house and the documents",
    "launch": "launch files",
    "robot_adapters/indy7_sdk": "robot_adapters/indy7, where the arm's SDK is installed",
    "robot_adapters/tello_sdk": "robot_adapters/tello, with the drone's SDK",
    "tools": "tools/",
}


def folders(path: Path) -> list[str]:
    """Those of tests, relative to ``test``."""
    return sorted({str(test.parent.relative_to(path)) for test in path.glob("*/**/test_*.py")})


def room_of(folder: str) -> Path:
    return ROOT / folder if folder.startswith("robot_adapters") else ROOT / "timely_llm" / folder


def files_of(module: Path) -> list[Path]:
    folder = module.relative_to(ROOT).parent
    name = folder.relative_to("timely_llm") if folder.parts[0] == "timely_llm" else folder
    return sorted((ROOT / "test" / name).glob(f"test_{module.stem}*.py"))


MODULES = [
    path for room in PURE for path in sorted((ROOT / room).glob("*.py")) if path.stem[0] != "_"
]


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_pure_module_has_a_test_file_of_its_name(module: Path) -> None:
    exempt = str(module.relative_to(ROOT)) in NO_FILE
    assert bool(files_of(module)) is not exempt


@pytest.mark.parametrize("folder", folders(ROOT / "test"))
def test_a_folder_of_tests_has_a_room(folder: str) -> None:
    assert folder in OTHER or room_of(folder).is_dir()


@pytest.mark.parametrize(
    "path", sorted((ROOT / "test" / "support").glob("*.py")), ids=lambda p: p.stem
)
def test_what_tests_share_holds_no_test_and_is_used(path: Path) -> None:
    names = [getattr(node, "name", "") for node in ast.parse(path.read_text()).body]
    assert not [name for name in names if name.startswith("test_")]
    users = (other for other in (ROOT / "test").rglob("*.py") if other != path)
    assert any(f"{path.stem}" in other.read_text() for other in users)


def test_data_is_not_kept_twice() -> None:
    kept: dict[bytes, Path] = {}
    for path in sorted([*ROOT.glob("test/data/**/*"), *ROOT.glob("timely_llm/data/**/*")]):
        if path.is_file():
            other = kept.setdefault(path.read_bytes(), path)
            assert other is path, f"{path} is {other} again"


def test_exemptions_are_of_modules_that_are_there() -> None:
    assert not [name for name in NO_FILE if not (ROOT / name).is_file()]
