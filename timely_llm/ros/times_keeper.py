"""The file of learned durations, read at configure, written every minute and at the end; and the
log of robots that have become slower."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path

from timely_llm.estimation.learned_times import Learned, Times
from timely_llm.estimation.times_file import read, text_of
from timely_llm.validation.reader import FileError, file_text

PERIOD = 60.0  # s between two writings, where there is anything new
_MOST = 1 << 26  # bytes


class TimesKeeper:
    """Keeps what was learned in ``path``; None: nowhere.

    A file that cannot be read as learned times is never overwritten: ``problem`` says what is
    wrong with it, the log does so once, and the planner begins with the skill sets' durations.
    ``warn`` and ``error`` log a line.
    """

    def __init__(
        self, path: Path | None, warn: Callable[[str], object], error: Callable[[str], object]
    ) -> None:
        self.path, self.problem, self._readable = path, "", True
        self.drifts: dict[str, dict[str, float]] = {}  # factor by robot and skill
        self._warn, self._error = warn, error
        self._writer = ThreadPoolExecutor(1, "times")
        self._writing: set[Future[None]] = set()
        self._latest: Learned | None = None

    def restore(self, times: Times | None) -> None:
        """Let ``times`` continue from the file, if there is one; what was known of it before is
        forgotten."""
        self.problem, self.drifts, self._readable = "", {}, True
        if self.path is None or times is None:
            return
        try:
            if not self.path.exists():
                return
            if self.path.stat().st_size > _MOST:
                raise FileError(str(self.path), None, "", f"is larger than {_MOST} bytes")
            learned = read(file_text(self.path), str(self.path))
        except (OSError, FileError) as error:
            named = str(error) if str(self.path) in str(error) else f"{self.path}: {error}"
            self._readable = False
            self._say(
                f"parameter 'times_file': {named}; going by the skill sets' durations. The file is "
                "left as it is: what is learned now is not kept"
            )
            return
        times.restore(learned)
        for robot, skills in learned.robots.items():
            for (_, skill, _), own in skills.items():
                if own.drift.factor != 1.0:
                    self.drifts.setdefault(robot, {})[skill] = own.drift.factor

    def drifted(self, robot: str, skill: str, factor: float) -> None:
        """Log that a robot's skill takes ``factor`` times as long as it used to; 1: as usual."""
        if factor == 1.0:
            self.drifts.get(robot, {}).pop(skill, None)
            self._warn(f"robot {robot!r}: {skill} takes as long as usual again")
            return
        self.drifts.setdefault(robot, {})[skill] = factor
        self._warn(f"robot {robot!r}: {skill} takes {factor:.2f} times as long as it used to")

    def keep(self, learned: Learned) -> None:
        """Write soon, in a separate thread; of several, only the last is written."""
        if self.path is not None and self._readable:
            self._latest = learned
            self._writing = {self._writer.submit(self._write, self.path, learned)}

    def finish(self, learned: Learned | None) -> None:
        """Keep ``learned``, if there is any, and wait until everything is written."""
        if learned is not None:
            self.keep(learned)
        wait(self._writing)

    def _write(self, path: Path, learned: Learned) -> None:
        if learned is not self._latest:
            return
        try:
            write(path, text_of(learned))
        except OSError as error:
            self._say(f"parameter 'times_file': {path} cannot be written: {error}")
        else:
            self.problem = ""

    def _say(self, problem: str) -> None:
        if problem != self.problem:
            self.problem = problem
            self._error(problem)


def write(path: Path, text: str) -> None:
    """Replace the file whole or not at all, whenever the machine fails. ``OSError``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open(part, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except OSError:
        part.unlink(missing_ok=True)
        raise


def words(drifts: Mapping[str, float]) -> str:
    """``mf takes 1.50 times as long as it used to``."""
    return ", ".join(
        f"{skill} takes {factor:.2f} times as long as it used to"
        for skill, factor in sorted(drifts.items())
    )
