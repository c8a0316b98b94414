"""The pages that people read: few of them, and every link in them leads somewhere."""

import re
from pathlib import Path

import pytest

from timely_llm import policies
from timely_llm.protocols.messages import ErrorCode
from timely_llm.ros.parameters import PARAMETERS

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", *sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("docs/*.md")))
CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)


def anchors(path: Path) -> set[str]:
    """What GitHub makes of the headings of a page."""
    text = re.sub(r"^```.*?^```$", "", path.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    words = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {word.strip().replace(" ", "-") for word in words}


def test_there_are_ten_pages_at_most():
    assert len(PAGES) - 1 <= 10


@pytest.mark.parametrize("page", (*PAGES, "models/tiny_planner/README.md"))
def test_every_relative_link_leads_somewhere(page):
    path = ROOT / page
    links = re.findall(r"\]\(([^)\s]+)\)", CODE.sub("", path.read_text("utf-8")))
    lost = []
    for link in links:
        if link.startswith(("https://", "http://")):
            continue
        name, _, anchor = link.partition("#")
        target = path.parent / name if name else path
        if not target.exists() or (anchor and anchor not in anchors(target)):
            lost.append(link)
    assert lost == []


def test_every_page_that_the_code_names_is_there():
    files = [
        path
        for folder in ("timely_llm", "robot_adapters", "config", "scripts", "benchmarks", "tools")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".py", ".yaml", ".jinja2", ".sh")
    ]
    named = {name for path in files for name in re.findall(r"docs/\w+\.md", path.read_text())}
    assert {name for name in named if not (ROOT / name).is_file()} == set()
    assert len(named) > 5


@pytest.mark.parametrize("page", (*PAGES, "models/tiny_planner/README.md"))
def test_every_file_that_a_page_names_is_there(page):
    places = (ROOT, ROOT / "timely_llm", ROOT / "robot_adapters")
    named = re.findall(r"`([a-z_]+/[\w/]+\.(?:py|yaml|jinja2|action))`", (ROOT / page).read_text())
    assert [name for name in named if not any((place / name).is_file() for place in places)] == []


def test_every_code_policy_and_parameter_has_its_line():
    codes = (ROOT / "docs/interfaces.md").read_text()
    assert [code.name for code in ErrorCode if not re.search(rf"\b{code.name}\b", codes)] == []
    rules = (ROOT / "docs/policies.md").read_text()
    assert [name for name in policies.names() if f"`{name}`" not in rules] == []
    config = (ROOT / "config/planner.yaml").read_text()
    lines = (name.rpartition(".")[2] for name in PARAMETERS)
    assert [name for name in lines if not re.search(rf"^ *{name}:", config, re.MULTILINE)] == []
