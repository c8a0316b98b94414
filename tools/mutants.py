#!/usr/bin/env python3
"""Random mutants of the pure rooms against their tests: ``make mutants ARGS='--seed 7'``.

A mutant is one small change of the code: a comparison, an operator, a constant, a call left out.
Tests that bite fail on it. Each mutant meets the tests of its module, then those of its room, then
those of the rooms above, up to the first failure. The same seed and code give the same mutants.
Exit status 1 if fewer than 95% die of those that ``tools/equivalent_mutants.yaml`` does not claim
to be equivalent, or if it claims more than 5%.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import importlib
import json
import multiprocessing
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
CLAIMS = ROOT / "tools" / "equivalent_mutants.yaml"
TARGET, MOST_CLAIMED = 0.95, 0.05
DEFAULT = ("timely_llm/core", "timely_llm/policies", "robot_adapters/executor")
# The folders of pure tests: those after a room's own test what is built on it.
TESTS = ("validation", "protocols", "language", "prompts", "estimation", "policies", "core",
         "simulation", "robot_adapters/executor")  # fmt: skip
# Imported once, before the workers fork: no code of the project.
SHARED = ("hypothesis", "jinja2", "numpy", "pydantic", "scipy.optimize", "scipy.stats", "typer")
FORK = multiprocessing.get_context("fork")
TEST_TIMEOUT_S = 40
MEMORY_BYTES = 16 << 30

SWAPS: dict[type, tuple[type, ...]] = {
    ast.Lt: (ast.LtE, ast.GtE), ast.LtE: (ast.Lt, ast.Gt), ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt), ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,), ast.In: (ast.NotIn,), ast.NotIn: (ast.In,),
    ast.Add: (ast.Sub,), ast.Sub: (ast.Add,), ast.Mult: (ast.Div,), ast.Div: (ast.Mult,),
    ast.FloorDiv: (ast.Mult,), ast.Mod: (ast.Mult,), ast.Pow: (ast.Mult,),
    ast.BitOr: (ast.BitAnd,), ast.BitAnd: (ast.BitOr,), ast.And: (ast.Or,), ast.Or: (ast.And,),
}  # fmt: skip
NAMES = {"min": "max", "max": "min", "any": "all", "all": "any"}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one file; ``was`` and ``now`` are the lines that differ, without indents."""

    file: str
    line: int
    was: str
    now: str
    text: str  # of the whole file


def changed(node: ast.expr | ast.stmt, field: str, value: object) -> str:
    """The node as code, with one field changed."""
    other = copy.copy(node)
    setattr(other, field, value)
    code = ast.unparse(other)
    return code if isinstance(node, ast.stmt) else f"({code})"


def changes(node: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    """(part, code in its place) for each change of this node."""
    match node:
        case ast.Compare(ops=[operator]):
            for swap in SWAPS[type(operator)]:
                yield node, changed(node, "ops", [swap()])
        case ast.BinOp(op=operator) | ast.AugAssign(op=operator):
            for swap in SWAPS.get(type(operator), ()):
                yield node, changed(node, "op", swap())
        case ast.BoolOp(op=operator, values=values):
            yield node, changed(node, "op", SWAPS[type(operator)][0]())
            for index in range(len(values)):
                yield node, changed(node, "values", values[:index] + values[index + 1 :])
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield node, f"({ast.unparse(operand)})"
        case ast.Constant(value=bool(value)):
            yield node, str(not value)
        case ast.Constant(value=int(value) | float(value)):
            yield node, str(value + 1)
        case ast.Call(func=ast.Name(id=name) as function) if name in NAMES:
            yield function, NAMES[name]
        case ast.If(test=ast.Name("TYPE_CHECKING")):
            return
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
            yield test, f"(not ({ast.unparse(test)}))"
        case ast.comprehension(ifs=[test]):
            yield test, f"(not ({ast.unparse(test)}))"
            yield test, "True"
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            yield node, "return None"
    match node:
        case (
            ast.Expr(value=ast.Call())
            | ast.Assign(targets=[ast.Attribute() | ast.Subscript()])
            | (ast.AugAssign() | ast.Delete() | ast.Raise() | ast.Continue() | ast.Break())
        ):
            yield node, "pass"


def nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """What is run, without annotations, decorators, texts and what only the type checker reads.

    A first value in ``__init__`` is changed, not left out: without it nothing works, or it was
    never read.
    """
    yield tree
    starts = isinstance(tree, ast.FunctionDef) and tree.name == "__init__"
    for field, value in ast.iter_fields(tree):
        if field in ("annotation", "returns", "decorator_list", "type_ignores"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if starts and isinstance(child, ast.Assign):
                yield from nodes(child.value)
            elif isinstance(child, ast.AST) and not isinstance(child, (ast.JoinedStr, ast.pattern)):
                yield from nodes(child)


def differing(old: str, new: str) -> tuple[int, str, str]:
    """The number of the first line that differs, and the lines that do, without indents."""
    was, now = old.splitlines(), new.splitlines()
    start = next(i for i, pair in enumerate(zip(was, now, strict=False)) if pair[0] != pair[1])
    end = next(i for i in range(1, len(was)) if was[-i] != now[-i]) - 1
    parts = (lines[start : len(lines) - end] for lines in (was, now))
    old_part, new_part = ("\n".join(line.strip() for line in part) for part in parts)
    return start + 1, old_part, new_part


def mutants_of(path: Path) -> Iterator[Mutant]:
    source = path.read_text(encoding="utf-8")
    lines = source.encode().splitlines(keepends=True)
    starts = [sum(map(len, lines[:number])) for number in range(len(lines))]
    for node in nodes(ast.parse(source)):
        for part, code in changes(node):
            assert part.end_lineno and part.end_col_offset is not None
            first = starts[part.lineno - 1] + part.col_offset
            last = starts[part.end_lineno - 1] + part.end_col_offset
            text = (source.encode()[:first] + code.encode() + source.encode()[last:]).decode()
            line, was, now = differing(source, text)
            yield Mutant(str(path.relative_to(ROOT)), line, was, now, text)


def all_mutants(places: list[str]) -> list[Mutant]:
    """Each different mutant of the modules below these places, by file and line."""
    files = {path for place in places for path in (ROOT / place).glob("**/*.py")}
    files |= {ROOT / place for place in places if place.endswith(".py")}
    found = (mutant for path in sorted(files) for mutant in mutants_of(path))
    return list({(mutant.file, mutant.text): mutant for mutant in found}.values())


def room_of(file: str) -> str:
    folder = str(Path(file).parent).removeprefix("timely_llm/")
    return folder if folder in TESTS else sys.exit(f"{file} is in no room of {TESTS}")


def stages(tree: Path, file: str, rooms: int) -> list[list[str]]:
    """pytest's arguments for the tests of a module, of its room, and of so many rooms above."""
    room = room_of(file)
    names = (f"test_{Path(file).stem}*.py", "test_*_runs.py")  # whole runs notice much
    found = [path for name in names for path in sorted(tree.glob(f"test/{room}/{name}"))]
    mirrored = list(dict.fromkeys(str(path.relative_to(tree)) for path in found))
    above = [f"test/{name}" for name in TESTS[TESTS.index(room) + 1 :][:rooms]]
    others = [f"test/{room}", *(f"--ignore={name}" for name in mirrored)]
    return [group for group in (mirrored, others, above) if group]


class FirstFailure:
    """A pytest plugin: the name of the first test that failed."""

    name = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if report.failed:
            self.name = self.name or report.nodeid

    pytest_collectreport = pytest_runtest_logreport


def enter(tree: Path) -> None:
    """Make a copy of the project the one that this process and its children import."""
    os.setsid()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    os.chdir(tree)
    for output in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), output)
    moved = {str(ROOT): str(tree), str(ROOT / "tools"): str(tree)}
    sys.path[:] = [moved.get(place, place) for place in sys.path]
    places = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    os.environ["PYTHONPATH"] = os.pathsep.join(moved.get(place, place) for place in places)
    os.environ["HYPOTHESIS_PROFILE"] = "ci"  # the same examples each time


def run_tests(tree: Path, groups: list[list[str]], answer: Connection) -> None:
    """In a process of its own: sends the first failure, or an empty text."""
    enter(tree)
    # By a thread: it ends the process, while hypothesis would try a test that raises once more.
    options = ["-x", "-q", "-p", "no:cacheprovider", "--timeout-method=thread"]
    options.append(f"--timeout={TEST_TIMEOUT_S}")
    failure = FirstFailure()
    for group in groups:
        code = pytest.main([*options, *group], plugins=[failure])
        if failure.name or code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            return answer.send(failure.name or f"pytest: {code!r}")
    answer.send("")


def first_failure(tree: Path, groups: list[list[str]], limit_s: float) -> str:
    """The first test that fails in this copy of the project, or an empty text."""
    receiver, sender = FORK.Pipe(duplex=False)
    process = FORK.Process(target=run_tests, args=(tree, groups, sender))
    process.start()
    sender.close()
    try:
        failure = receiver.recv() if receiver.poll(limit_s) else f"more than {limit_s:.0f} s"
    except EOFError:
        failure = "the process of the tests died"
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid or 0, signal.SIGKILL)
    process.join()
    return failure


def judge(job: tuple[Mutant, Path, int, float]) -> str:
    """The test that kills a mutant, or an empty text. Each worker has a copy of its own."""
    mutant, original, rooms, limit_s = job
    tree = original.with_name(f"worker-{os.getpid()}")
    if not tree.exists():
        shutil.copytree(original, tree)
    sys.dont_write_bytecode = True  # that of a mutant may pass for another's
    path = tree / mutant.file
    code = path.read_bytes()
    for cached in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
        cached.unlink()
    path.write_text(mutant.text, encoding="utf-8")
    try:
        return first_failure(tree, stages(tree, mutant.file, rooms), limit_s)
    finally:
        path.write_bytes(code)


def check_unchanged(tree: Path, mutants: list[Mutant], rooms: int) -> float:
    """Seconds that the tests take without a mutant; ends the program if one fails."""
    lowest = sorted({TESTS.index(room_of(mutant.file)) for mutant in mutants})
    needed = sorted({number for low in lowest for number in range(len(TESTS))[low:][: rooms + 1]})
    started = time.monotonic()
    if failure := first_failure(tree, [[f"test/{TESTS[number]}" for number in needed]], 3600):
        sys.exit(f"fails without a mutant: {failure}")
    return time.monotonic() - started


def report(mutants: list[Mutant], killers: Iterable[str]) -> list[dict[str, Any]]:
    """Print each mutant that lives as a diff; returns all with what became of them."""
    claims = {(c["file"], c["was"], c["now"]): c["why"] for c in yaml.safe_load(CLAIMS.open())}
    rows = []
    for number, (mutant, test) in enumerate(zip(mutants, killers, strict=True), 1):
        why = claims.get((mutant.file, mutant.was, mutant.now))
        verdict = "killed" if test else "claimed" if why else "survived"
        print(f"{number:4} {verdict:9} {mutant.file}:{mutant.line} {test}", flush=True)
        if not test:
            print(*(f"       - {line}" for line in mutant.was.splitlines()), sep="\n")
            print(*(f"       + {line}" for line in mutant.now.splitlines()), sep="\n")
        if why:
            print("       claimed to be equivalent:", why)
        row = {"file": mutant.file, "line": mutant.line, "was": mutant.was, "now": mutant.now}
        rows.append(row | {"verdict": verdict, "test": test, "why": why})
    return rows


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("places", nargs="*", default=DEFAULT, help="rooms or modules")
    add("--seed", type=int, default=1, help="of the choice of mutants")
    add("--count", type=int, default=200, help="mutants")
    add("--jobs", type=int, default=os.cpu_count(), help="mutants at a time")
    add("--rooms", type=int, default=99, help="rooms above a mutant's own whose tests it meets")
    add("--json", type=Path, help="file for the mutants and what became of them")
    add("--again", type=Path, help="such a file: only the mutants that survived there")
    return parser.parse_args()


def choose(settings: argparse.Namespace) -> list[Mutant]:
    found = all_mutants(settings.places)
    if settings.again:
        rows = json.loads(settings.again.read_text())["mutants"]
        lived = {(r["file"], r["was"], r["now"]) for r in rows if r["verdict"] == "survived"}
        return [m for m in found if (m.file, m.was, m.now) in lived]
    chosen = random.Random(settings.seed).sample(range(len(found)), min(settings.count, len(found)))
    print(f"{len(chosen)} of {len(found)} mutants, seed {settings.seed}", flush=True)
    return [found[number] for number in sorted(chosen)]


def main() -> int:
    settings = options()
    mutants = choose(settings)
    for name in SHARED:
        importlib.import_module(name)
    with tempfile.TemporaryDirectory() as folder, ProcessPoolExecutor(settings.jobs, FORK) as pool:
        tree = Path(folder, "original")
        shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(".*", "build", "install", "log"))
        limit_s = 60 + 2 * check_unchanged(tree, mutants, settings.rooms)
        jobs = [(mutant, tree, settings.rooms, limit_s) for mutant in mutants]
        rows = report(mutants, pool.map(judge, jobs))
    count = Counter(row["verdict"] for row in rows)
    share = count["killed"] / max(1, count["killed"] + count["survived"])
    print(f"killed {count['killed']}, survived {count['survived']}, claimed to be equivalent "
          f"{count['claimed']}: {share:.1%} of the others die (target {TARGET:.0%})")  # fmt: skip
    if settings.json:
        result = {"seed": settings.seed, "places": list(settings.places), **count, "mutants": rows}
        settings.json.write_text(json.dumps(result, indent=1) + "\n")
    return 0 if share >= TARGET and count["claimed"] <= MOST_CLAIMED * len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
