"""Every kind of file that is read, changed at random: what reads it answers with a value or with
its own error, never with another one.

By hand, many more than the tests do: ``scripts/env.sh python test/support/mutated_files.py 8000``.
"""

from __future__ import annotations

import random
import re
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import bag_cases
import profiles
import typer
from learned_cases import learned

from robot_adapters.adapter import AdapterError
from robot_adapters.indy7.cell import load_cell
from robot_adapters.simulated.world import World
from timely_llm.bench import profile_file
from timely_llm.cli.fleet_file import fleet_nodes, load_fleet
from timely_llm.cli.options import parameters
from timely_llm.cli.script_file import load_script
from timely_llm.engine.encoding import read_chat_template
from timely_llm.engine.model_files import check_model
from timely_llm.estimation import times_file
from timely_llm.estimation.learned_times import Times
from timely_llm.language.grammar import plan_grammar
from timely_llm.language.loader import load_skill_set
from timely_llm.paths import data, share
from timely_llm.prompts.examples import examples
from timely_llm.prompts.template import PromptTemplate, TemplateError
from timely_llm.protocols.engine import EngineRequest, InvalidArgument, ModelBroken
from timely_llm.recording import bag
from timely_llm.recording.costs import costs_of
from timely_llm.recording.goals import goals_of
from timely_llm.recording.recorded_trace import NothingToReplay, trace_of
from timely_llm.recording.replay import batch_of, replay, what_happened
from timely_llm.recording.report import page
from timely_llm.ros.declare import ParameterError
from timely_llm.ros.parameters import json_object
from timely_llm.ros.planner_factory import script_of
from timely_llm.simulation import trace_file
from timely_llm.simulation.workloads.published import make
from timely_llm.validation.reader import FileError, file_text

TELLO = share("config", "skills", "tello.yaml")
SCRIPT = {"drone_1", "drone_2", "drone_3", "drone_4", "arm_1", "arm_2"}

#: What people and broken programs write: instead of a value, or anywhere.
NASTY = (
    *("", "0", "-1", "1e308", "1e999", "-1e999", ".inf", "-.inf", ".nan", "NaN", "Infinity"),
    *("9" * 401, "9" * 5000, "0x" + "f" * 400, "1" + "0" * 308 + ".5", "1e-400", "1_0:60:60"),
    *("null", "~", "true", "[]", "{}", "[[]]", "x: y", "- x", "2001-99-99", "=", "<<: x", "? x"),
    *("!!int x", "!!bool x", "!!binary =", "!!python/object:os.system {}", "!x y", "*a", "&a [*a]"),
    *("&a {b: *a}", "[" * 3000, "{a: " * 3000, "(" * 3000, '"', "'", "|", ">", "%YAML 9.9", "---"),
    *("{{", "}}", "{% if x %}", "{{ 9 ** 9 ** 9 }}", "{{ 'x' * 10 ** 9 }}", "{{ " + "-" * 3000),
    *("{{ " + "(" * 300, "{% for x in range(10 ** 9) %}", "\0", "\x1b[2J", "\ufeff", "\ud800"),
    *("\u2028", "x" * 100_000, "-> ", "_1 = ", "é", "../../etc/passwd", "/dev/null", "."),
)


def mutated(content: bytes, rng: random.Random) -> bytes:
    """``content`` with one to four changes."""
    for _ in range(rng.choice((1, 1, 2, 4))):
        content = rng.choice((_byte, _cut, _nasty, _nasty, _value, _value, _line, _line))(
            content, rng
        )
    return content


def _place(content: bytes, rng: random.Random) -> int:
    return rng.randint(0, len(content))


def _byte(content: bytes, rng: random.Random) -> bytes:
    at = _place(content, rng)
    return content[:at] + rng.randbytes(rng.choice((0, 1, 1, 4))) + content[at + 1 :]


def _cut(content: bytes, rng: random.Random) -> bytes:
    one, other = sorted((_place(content, rng), _place(content, rng)))
    return content[:one] + content[rng.choice((one, other)) :] if rng.random() < 0.7 else b""


def _nasty(content: bytes, rng: random.Random) -> bytes:
    at = _place(content, rng)
    return content[:at] + _words(rng) + content[at:]


def _value(content: bytes, rng: random.Random) -> bytes:
    """What stands behind a colon or a comma is something else."""
    places = [i for i, byte in enumerate(content) if byte in b":,[("]
    if not places:
        return content
    at = rng.choice(places) + 1
    ends = (content.find(end, at) for end in (b"\n", b",", b"]", b")", b"}"))
    end = min((end for end in ends if end >= 0), default=len(content))
    return content[:at] + b" " + _words(rng) + content[end:]


def _line(content: bytes, rng: random.Random) -> bytes:
    lines = content.split(b"\n")
    at, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    match rng.randrange(4):
        case 0:
            lines.insert(at, lines[other])
        case 1:
            del lines[at]
        case 2:
            lines[at], lines[other] = lines[other], lines[at]
        case _:
            lines[at] = b" " * rng.randrange(9) + lines[at].strip()
    return b"\n".join(lines)


def _words(rng: random.Random) -> bytes:
    return rng.choice(NASTY).encode("utf-8", "surrogatepass")


@dataclass(frozen=True)
class Kind:
    """A kind of file: whole ones, how one at a path is read and used, and the errors for that."""

    whole: tuple[bytes, ...]
    name: str
    use: Callable[[Path], object]
    errors: tuple[type[Exception], ...]


def kinds(folder: Path) -> dict[str, Kind]:
    """All of them; ``folder`` is for what is made to be read."""
    tello, workload = load_skill_set(TELLO), make("wid2", 1)
    few = trace_file.Trace(workload.name, workload.arrivals[:6], workload.source)
    trace = trace_file.to_text(few).encode()
    flight = bag_cases.record(bag_cases.busy_fleet(), folder / "flight")
    profile = profiles.write(folder).read_bytes()
    times = times_file.text_of(learned(2.0).learned()).encode()

    def skills(path: Path) -> None:
        found = load_skill_set(path)
        plan_grammar(found), examples(found)
        PromptTemplate.default().system(found)

    def template(path: Path) -> None:
        found = PromptTemplate.from_file(path)
        found.system(tello), found.user(tello, "[cat]", "Go")

    def recording(path: Path) -> None:
        found = bag.read(path if path.suffix == ".mcap" else path.parent)
        goals = goals_of(found)
        page(found, goals)
        traced, costs = trace_of(found, goals), costs_of(goals)
        what_happened(traced)
        replay(found, traced, costs, "vllm", min(batch_of(found), 64))

    def metadata(path: Path) -> None:
        mcap = next(flight.glob("*.mcap"))
        (path.parent / mcap.name).write_bytes(mcap.read_bytes())
        recording(path)

    def learned_times(path: Path) -> None:
        text = file_text(path)
        times = Times()
        times.restore(times_file.read(text, str(path)))
        times_file.text_of(times.learned())

    def tasks(path: Path) -> None:
        script_of(path)(EngineRequest("1", 1, "system", "Go to the cat"))

    def profiled(path: Path) -> None:
        profile_file.load(path).latency(1)

    def option(path: Path) -> None:
        parameters([path.read_text("utf-8", "replace")])

    def json_parameter(path: Path) -> None:
        json_object({"sampling": path.read_text("utf-8", "replace")}, "sampling")

    def model(path: Path) -> None:
        check_model(path.parent, weights=False, tokenizer=False)
        profile_file.identify(str(path.parent))

    def below(*parts: str) -> tuple[bytes, ...]:
        return tuple(path.read_bytes() for path in sorted(share(*parts).glob("**/*.yaml")))

    return {
        "skill set": Kind(below("config", "skills"), "a.yaml", skills, (FileError,)),
        "fleet": Kind(
            below("config", "fleets"), "a.yaml", lambda p: fleet_nodes(load_fleet(p)), (FileError,)
        ),
        "script": Kind(
            below("config", "scripts"), "a.yaml", lambda p: load_script(p, SCRIPT), (FileError,)
        ),
        "world": Kind(below("config", "worlds"), "a.yaml", World.from_file, (AdapterError,)),
        "cell": Kind(below("config", "cells"), "a.yaml", load_cell, (AdapterError,)),
        "template": Kind(
            (share("config", "prompts", "default.jinja2").read_bytes(),), "a", template,
            (TemplateError,),
        ),
        "chat template": Kind((b"{{ messages }}",), "a", lambda p: read_chat_template(str(p)),
                              (InvalidArgument,)),
        "times": Kind((times,), "a.json", learned_times, (FileError,)),
        "trace": Kind((trace,), "a.jsonl", trace_file.read, (FileError,)),
        "profile": Kind((profile,), "a.yaml", profiled, (FileError,)),
        "tasks": Kind((data("lrtrace_tasks.json").read_bytes(),), "a.json", tasks,
                      (ParameterError,)),
        "parameter": Kind((b"a:=[1, 2.5]", b"b:=true"), "a", option, (typer.BadParameter,)),
        "JSON parameter": Kind((b'{"a": [1.5, "x"]}',), "a", json_parameter, (ParameterError,)),
        "model": Kind((b'{"hidden_size": 192}',), "config.json", model,
                      (ModelBroken, profile_file.ProfileMismatch)),
        "bag": Kind((next(flight.glob("*.mcap")).read_bytes(),), "a.mcap", recording,
                    (bag.BagError, NothingToReplay)),
        "bag's metadata": Kind(((flight / "metadata.yaml").read_bytes(),), "metadata.yaml",
                               metadata, (bag.BagError, NothingToReplay)),
    }  # fmt: skip


def faults(kind: Kind, folder: Path, count: int, seed: object) -> Iterator[tuple[float, str]]:
    """Seconds of each reading, and its traceback where it ended with another error."""
    rng = random.Random(str(seed))
    for number in range(count):
        place = folder / str(number)
        place.mkdir(parents=True)
        path = place / kind.name
        path.write_bytes(mutated(rng.choice(kind.whole), rng))
        begun, wrong = time.perf_counter(), ""
        signal.alarm(20)  # what hangs ends in a traceback
        try:
            kind.use(path)
        except kind.errors as error:
            if not str(error):
                wrong = f"{path}: an error without a word"
        except Exception:
            wrong = f"{path}\n{traceback.format_exc()}"
        signal.alarm(0)
        yield time.perf_counter() - begun, wrong
        if not wrong:
            for file in place.iterdir():
                file.unlink()
            place.rmdir()


def _hangs(*_: object) -> None:
    raise TimeoutError("it hangs")


def main() -> None:
    """COUNT mutations of all kinds together, SEED, and the kinds (default: all)."""
    signal.signal(signal.SIGALRM, _hangs)
    count, seed, *wanted = [*sys.argv[1:], "8000", "1"][: max(2, len(sys.argv) - 1)]
    folder = Path(tempfile.mkdtemp(prefix="mutated-"))
    all_kinds = kinds(folder)
    chosen = [name for name in all_kinds if not wanted or name in wanted]
    for name in chosen:
        slowest, seen = 0.0, Counter()
        each = -(-int(count) // len(chosen))
        for took, wrong in faults(all_kinds[name], folder / name, each, f"{seed} {name}"):
            slowest = max(slowest, took)
            if took > 3.0:
                print(f"{name}: took {took:.1f} s")
            if wrong:
                last = re.sub(r"\d+", "0", wrong.strip().splitlines()[-1])[:60]
                seen[last] += 1
                if seen[last] == 1:
                    print(wrong[-2500:])
        print(
            f"{name}: {each} mutations, slowest {slowest:.2f} s, faults {seen.total()}", flush=True
        )


if __name__ == "__main__":
    main()
