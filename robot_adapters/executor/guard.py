"""An adapter as its executor and its node call it: whatever it does, nothing but a call fails.

Adapters come from many hands. What one raises, and an answer that cannot be, is a ``CallFault``
with words that can be sent. What it must do (halt, hold, close) and fails to do is tried again
until it is done. Pure: no ROS, no SDK, no clock.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any, TypeVar

from robot_adapters.adapter import Adapter, Notice, Notified, Progress, Recoverable
from robot_adapters.executor.interpreter import LARGEST, LONGEST
from timely_llm.protocols.messages import LONGEST_TIME, SkillCall

RETRY = 0.2  # s, between two tries to have a robot halt, hold or let go
LONGEST_SCENE = 100_000  # characters
MOST_FACTS = 100  # of the diagnostics

Answer = TypeVar("Answer")


class CallFault(Exception):
    """Why a call is not carried out, or no further, in words that can be sent."""


def sendable(text: str) -> str:
    """No longer than ``LONGEST``, and without what UTF-8 does not have."""
    return text[:LONGEST].encode(errors="replace").decode()


def words_of(error: BaseException) -> str:
    """What an exception says; one that says nothing has its name."""
    try:
        return sendable(str(error)) or type(error).__name__
    except Exception:
        return type(error).__name__


def attempt(action: Callable[..., Answer], *arguments: Any, by: str = "adapter") -> Answer:
    """What ``action`` returns; whatever it raises is a ``CallFault`` of ``by``."""
    try:
        return action(*arguments)
    except BaseException as error:  # an SDK that exits must not take the node with it
        raise CallFault(f"{by}: {words_of(error)}") from error


class GuardedAdapter:
    """``faults`` has what is wrong with the last call of each method, in words. Where a method here
    may raise, it raises ``CallFault``."""

    def __init__(self, adapter: Adapter) -> None:
        self.skills = adapter.skills
        self.faults: dict[str, str] = {}
        self._adapter = adapter
        self._undone: dict[str, float] = {}  # what the robot still must do: when to try again, in s

    # What a plan asks for; the call fails where it cannot be had.

    def check(self, call: SkillCall) -> str:
        """Why the call must not be carried out from here; empty: it may."""
        return self._ask("check", _reason, call)

    def travel(self, call: SkillCall) -> float:
        """m, 0 or more."""
        return self._ask("travel", _way, call)

    def start(self, call: SkillCall, now: float) -> None:
        """Nothing begins while the robot has not confirmed a halt."""
        if self.unconfirmed:
            raise CallFault(self.unconfirmed)
        self._ask("start", _nothing, call, now)

    def poll(self, now: float) -> Progress:
        return self._ask("poll", _progress, now)

    def observe(self) -> str:
        return self._ask("observe", _scene)

    # What must be done, until it is.

    def halt(self, now: float) -> None:
        self._have_done("halt", now)

    def hold(self, now: float) -> None:
        self._have_done("hold", now)

    def close(self, now: float) -> None:
        """What is closed has halted too."""
        self._have_done("close", now)
        if "close" not in self._undone:
            self._undone.clear()

    @property
    def unconfirmed(self) -> str:
        """What the robot did not do when it had to, and why; empty: it did all."""
        return "; ".join(
            f"the robot did not confirm the {name}: {self.faults[name]}" for name in self._undone
        )

    def retry(self, now: float) -> None:
        """Try again what is due."""
        for name in [name for name, due in self._undone.items() if now >= due]:
            if name in self._undone:
                getattr(self, name)(now)

    # What may fail without harm; ``faults`` has it.

    def idle(self, now: float) -> None:
        """``poll`` without a call, so that a hold can go on."""
        self._try("poll", _progress, None, now)

    def next_poll(self, now: float) -> float | None:
        """When to ``poll`` or ``retry``, in s."""
        try:
            poll = self._ask("next_poll", _time, now)
        except CallFault:
            poll = now + RETRY
        times = (poll, *self._undone.values())
        return min((time for time in times if time is not None), default=None)

    def resume(self, now: float) -> None:
        self._undone.pop("hold", None)
        self._try("resume", _nothing, None, now)

    def notice(self, notice: Notice, now: float) -> None:
        if isinstance(self._adapter, Notified):
            self._try("notice", _nothing, None, notice, now)

    @property
    def recovers(self) -> bool:
        """Whether there is ``recover``."""
        return isinstance(self._adapter, Recoverable)

    def recover(self, now: float) -> str:
        """Why the robot does not recover; empty: it does, or has begun to."""
        return self._try("recover", _words, "", now) or self.faults.get("recover", "")

    def diagnostics(self) -> dict[str, str]:
        """Those of the adapter, and its faults."""
        facts: dict[str, str] = self._try("diagnostics", _facts, {})
        return facts | {f"fault of {name}": words for name, words in self.faults.items()}

    def _ask(self, name: str, read: Callable[[Any], Answer], *arguments: Any) -> Answer:
        try:
            said = attempt(getattr(self._adapter, name), *arguments)
            answer = attempt(read, said, by=f"adapter: {name}")
        except CallFault as fault:
            self.faults[name] = str(fault)
            raise
        self.faults.pop(name, None)
        return answer

    def _try(
        self, name: str, read: Callable[[Any], Answer], default: Answer, *arguments: Any
    ) -> Answer:
        try:
            return self._ask(name, read, *arguments)
        except CallFault:
            return default

    def _have_done(self, name: str, now: float) -> None:
        try:
            self._ask(name, _nothing, now)
            self._undone.pop(name, None)
        except CallFault:
            self._undone[name] = now + RETRY


# ---- what an adapter says: as it can be used, or whatever is raised over it ----------------------


def _nothing(said: Any) -> None:
    return None


def _words(said: Any) -> str:
    if not isinstance(said, str):
        raise ValueError(f"{said!r}: must be text")
    return sendable(said)


def _reason(said: Any) -> str:
    return "" if said is None else _words(said)


def _scene(said: str) -> str:
    if len(said) > LONGEST_SCENE:
        raise ValueError(f"{len(said)} characters: must be at most {LONGEST_SCENE}")
    said.encode()
    return said


def _number(said: Any, what: str, least: float = -math.inf, most: float = math.inf) -> float:
    if isinstance(said, bool) or not isinstance(said, int | float):
        raise ValueError(f"{what} is {said!r}: must be a number")
    if not (math.isfinite(said) and least <= said <= most):
        raise ValueError(f"{what} is {said}: must be finite, {least:g} to {most:g}")
    return said


def _way(said: Any) -> float:
    return _number(said, "it", 0.0)


def _time(said: Any) -> float | None:
    return None if said is None else _number(said, "it")


def _progress(said: Any) -> Progress:
    if not isinstance(said, Progress) or not isinstance(said.done, bool):
        raise ValueError(f"{said!r}: must be Progress, done or not")
    if isinstance(said.value, str):
        said.value.encode()
    elif not isinstance(said.value, bool | None) and abs(_number(said.value, "value")) > LARGEST:
        raise ValueError(f"value is {said.value}: must be within {LARGEST:g}")
    _number(said.elapsed, "elapsed", 0.0, LONGEST_TIME)
    _number(said.remaining, "remaining", most=LONGEST_TIME)
    return replace(said, error=_words(said.error))


def _facts(said: Mapping[Any, Any]) -> dict[str, str]:
    return {sendable(str(k)): sendable(str(v)) for k, v in islice(said.items(), MOST_FACTS)}
