"""The best total first-segment time utility of a small burst, exactly; model: docs/policies.md.

A search over what the engine computes, step by step. For more goals see ``bench/bound.py``.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from timely_llm.bench.bound_program import Setup
from timely_llm.bench.engine_costs import EngineCosts, Work

MAX_GOALS = 6
MAX_STATES = 4_000_000
_BEAM = 300
_DELAYS = (0.0, 0.02, 0.05, 0.1)  # s
_EPS = 1e-9


class TooLarge(ValueError):
    """More goals than a search can settle, or more states than it may visit."""


def exact(
    works: Sequence[Work],
    costs: EngineCosts,
    max_batch: int,
    *,
    network: float = 0.008,
    cut_at: float | None = None,
    max_states: int = MAX_STATES,
) -> float:
    """The most that all first segments of ``works`` together can be worth.

    Times in s. A segment counts when it reaches its robot, ``network`` after the step that
    completes it; whatever is not there at ``cut_at`` (60 s after the last arrival) is worth its
    utility then. ``TooLarge`` beyond ``MAX_GOALS`` goals or ``max_states`` states.
    """
    if len(works) > MAX_GOALS:
        raise TooLarge(f"{len(works)} goals: the exact search takes at most {MAX_GOALS}")
    if not works:
        return 0.0
    setup = Setup.of(works, costs, max_batch, network, cut_at)
    search = _Search(setup)
    good = max(map(setup.plain, range(1, len(works) + 1)))
    if search.bound(search.root)[0] <= good + _EPS:
        return good
    good = search.run(good - 2 * _EPS, _BEAM, max_states)
    return search.run(good, max_states, max_states)


@dataclass(frozen=True, slots=True)
class _States:
    """Many states of the burst, a row each: prompt tokens and decode steps that each goal still
    needs; the goals, as bits, whose prompt was computed before the last arrival and which therefore
    need not go on at once; the time in s; the utility gathered."""

    prompts: np.ndarray
    decodes: np.ndarray
    kept: np.ndarray
    now: np.ndarray
    value: np.ndarray

    def __len__(self) -> int:
        return len(self.now)

    def __getitem__(self, rows: np.ndarray) -> _States:
        return _States(*(getattr(self, name)[rows] for name in self.__slots__))

    @staticmethod
    def joined(parts: list[_States]) -> _States:
        columns = _States.__slots__
        return _States(*(np.concatenate([getattr(p, name) for p in parts]) for name in columns))


def _steps_left(states: _States) -> np.ndarray:
    return np.sum(states.prompts > 0, axis=1) + states.decodes.sum(axis=1)


class _Search:
    """All states with the most work left first, so that of states with the same work left the ones
    that are later and worth less are dropped before any of them goes on."""

    def __init__(self, setup: Setup) -> None:
        self.works, self.costs, self.max_batch = setup.works, setup.costs, setup.max_batch
        self.network, self.cut_at = setup.network, setup.cut_at
        self.at = np.array([work.at for work in self.works])
        self.total = np.array([work.decodes for work in self.works])
        self.arrivals = np.unique(self.at)
        self.groups: dict[object, list[int]] = defaultdict(list)
        for i, work in enumerate(self.works):
            self.groups[work.utility].append(i)
        sizes = [max(w.prompt, 1) + 1 for w in self.works] + [w.decodes + 1 for w in self.works]
        if math.prod(sizes) >= 2**56:
            raise TooLarge(
                f"first segments of {self.total.max() + 1} tokens are too long to search"
            )
        self.radix = np.cumprod([1, *sizes], dtype=np.int64)
        self.root = _States(
            np.array([[work.prompt for work in self.works]]),
            self.total[None, :].copy(),
            np.zeros(1, np.int64),
            self.arrivals[:1].copy(),
            np.zeros(1),
        )

    def run(self, best: float, width: int, max_states: int) -> float:
        """The best value above ``best``, keeping the ``width`` most promising states at a time."""
        layers: dict[int, list[_States]] = defaultdict(list)
        layers[_steps_left(self.root)[0]].append(self.root)
        visited = 0
        while layers:
            work = max(layers)
            states = self.front(self.with_parts(_States.joined(layers.pop(work))))
            if work == 0:
                return max(best, float(states.value.max()))
            bound = self.bound(states)
            keep = np.flatnonzero(bound > best + _EPS)
            if len(keep) > width:
                keep = keep[np.argsort(-self.promise(states[keep]), kind="stable")[:width]]
            states = states[keep]
            visited += len(states)
            if visited > max_states:
                raise TooLarge(f"the exact search visited {max_states} states without an end")
            for child in self.children(self.waiting(states)):
                rest = _steps_left(child)
                for number in np.unique(rest):
                    layers[int(number)].append(child[rest == number])
        return best

    def front(self, states: _States) -> _States:
        """Of states with the same work left, those that are earlier or worth more than others."""
        n = len(self.works)
        left = np.hstack([states.prompts, states.decodes]) @ self.radix[: 2 * n]
        key = left * (1 << n) + states.kept
        order = np.lexsort((-states.value, states.now, key))
        key, value = key[order], states.value[order]
        first = np.r_[True, key[1:] != key[:-1]]
        # The running best within each key: keys are told apart by an offset beyond all values.
        span = value.max() - value.min() + 1.0
        lifted = value + np.cumsum(first) * span
        before = np.r_[-np.inf, np.maximum.accumulate(lifted)[:-1]]
        return states[order[first | (lifted > before + _EPS)]]

    def worth(self, goal: int, done: np.ndarray) -> np.ndarray:
        """Utility of a first segment that the engine completes at ``done``."""
        work = self.works[goal]
        utility = work.utility
        wait = np.minimum(done + self.network, max(self.cut_at, work.at)) - work.at
        return np.minimum(utility.beta, utility.alpha * (wait - utility.ert) + utility.beta)

    # What the engine can do next.

    def waiting(self, states: _States) -> _States:
        """The states, and the same ones after waiting for each later arrival."""
        parts = [states]
        for at in self.arrivals[1:]:
            early = states[states.now < at - _EPS]
            now = np.full(len(early), at)
            parts.append(_States(early.prompts, early.decodes, early.kept, now, early.value))
        return _States.joined(parts)

    def children(self, states: _States) -> Iterator[_States]:
        n = len(self.works)
        bits = 1 << np.arange(n)
        present = self.at[None, :] <= states.now[:, None] + _EPS
        ready = (present & (states.prompts == 0) & (states.decodes > 0)) @ bits
        untouched = (states.prompts == 0) & (states.decodes == self.total) & (self.total > 0)
        # A prompt may as well be computed right before the step that uses it, unless there is time
        # for it only before an arrival: the next step then holds all prompts just computed.
        late = states.now >= self.arrivals[-1] - _EPS
        fresh = np.where(late, (untouched @ bits) & ~states.kept, 0)
        for i in range(n):
            # Of the orders in which such prompts are computed, one is enough.
            alone = np.full(len(states), self.total[i] == 0) | (fresh >> (i + 1) == 0)
            rows = np.flatnonzero(present[:, i] & (states.prompts[:, i] > 0) & alone)
            if len(rows):
                some = states[rows]
                yield self.computed(some, i, some.prompts[:, i])
        for batch in range(1, 1 << n):
            members = [i for i in range(n) if batch >> i & 1]
            if len(members) <= self.max_batch:
                rows = np.flatnonzero((batch & ~ready == 0) & (fresh & ~batch == 0))
                if len(rows):
                    yield self.decode(states[rows], members)

    def with_parts(self, states: _States) -> _States:
        """The states, and those with more of a prompt computed until an arrival cuts it."""
        found = new = [states]
        while new:
            now = self.waiting(_States.joined(new))
            now = now[now.now < self.arrivals[-1] - _EPS]
            new = [part for i in range(len(self.works)) for part in self.cut(now, i) if len(part)]
            found = found + new
        return _States.joined(found)

    def cut(self, states: _States, i: int) -> Iterator[_States]:
        """As much of a prompt as there is time for until the next arrival: the whole tokens before
        it, or one more."""
        token = self.costs.per_prompt_token
        if not token:
            return
        later = np.searchsorted(self.arrivals, states.now + _EPS, side="right")
        until = np.r_[self.arrivals, np.inf][later]
        rest = states.prompts[:, i]
        cut = (until < states.now + rest * token - _EPS) & (self.at[i] <= states.now + _EPS)
        states, rest = states[cut], rest[cut]
        whole = ((until[cut] - states.now) / token + _EPS).astype(np.int64)
        for chunk in (whole, whole + 1):
            rows = (chunk > 0) & (chunk < rest)
            yield self.computed(states[rows], i, chunk[rows])

    def computed(self, states: _States, i: int, chunk: np.ndarray) -> _States:
        """``chunk`` tokens of a goal's prompt, the last of which give the answer's first."""
        prompts, value = states.prompts.copy(), states.value
        prompts[:, i] -= chunk
        now = states.now + chunk * self.costs.per_prompt_token
        whole = prompts[:, i] == 0
        kept = states.kept | np.where(
            whole & (states.now < self.arrivals[-1] - _EPS) & (self.total[i] > 0), 1 << i, 0
        )
        if self.total[i] == 0:
            value = value + np.where(whole, self.worth(i, now), 0.0)
        return _States(prompts, states.decodes, kept, now, value)

    def decode(self, states: _States, members: list[int]) -> _States:
        """A step of these goals."""
        time = np.full(len(states), self.costs.decode(len(members)))
        decodes, value = states.decodes.copy(), states.value.copy()
        for i in members:
            time += self.costs.per_kv_token * (self.works[i].context(0) - decodes[:, i])
            decodes[:, i] -= 1
        now = states.now + time
        for i in members:
            value += np.where(decodes[:, i] == 0, self.worth(i, now), 0.0)
        return _States(states.prompts, decodes, states.kept, now, value)

    def promise(self, states: _States) -> np.ndarray:
        """How good a state looks: its bound, and what is left of that if all is delayed."""
        delayed = (replace(states, now=states.now + delay) for delay in _DELAYS)
        return np.sum([self.bound(later) for later in delayed], axis=0)

    # No schedule gets more.

    def bound(self, states: _States) -> np.ndarray:
        """Each goal alone; and of goals with the same utility, the k-th to be completed not before
        any k of them can be."""
        result = states.value.copy()
        for goals in self.groups.values():
            result += np.minimum(self.alone(states, goals), self.together(states, goals))
        return result

    def alone(self, states: _States, goals: list[int]) -> np.ndarray:
        total = np.zeros(len(states))
        for i in goals:
            start = np.maximum(states.now, self.at[i])
            time = states.prompts[:, i] * self.costs.per_prompt_token
            done = start + time + states.decodes[:, i] * self.costs.shortest_step
            open_ = (states.prompts[:, i] > 0) | (states.decodes[:, i] > 0)
            total += np.where(open_, self.worth(i, done), 0.0)
        return total

    def together(self, states: _States, goals: list[int]) -> np.ndarray:
        """Goals of one utility, as if all had come with the last of them and could take one
        another's place. Those that are done sort to the front and count nothing."""
        prompts, decodes = states.prompts[:, goals], states.decodes[:, goals]
        open_ = (prompts > 0) | (decodes > 0)
        done = np.sum(~open_, axis=1)
        words = np.cumsum(np.sort(prompts, axis=1), axis=1)
        steps = np.sort(decodes, axis=1)
        tokens = np.cumsum(steps, axis=1)
        last = max(goals, key=lambda i: self.works[i].at)
        start = np.maximum(states.now, min(self.at[i] for i in goals))
        total = np.zeros(len(states))
        for k in range(len(goals)):
            time = self.costs.decode_times_at_least(steps[:, k], tokens[:, k], self.max_batch)
            rank = start + words[:, k] * self.costs.per_prompt_token + time
            total += np.where(k >= done, self.worth(last, rank), 0.0)
        return total
