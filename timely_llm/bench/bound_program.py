"""The time-indexed linear program of one group of goals; equations in docs/policies.md. Pure.

``relaxed`` solves it on one grid of slots and says where a finer grid would tell more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_matrix, csr_matrix

from timely_llm.bench.engine_costs import EngineCosts, Work

CUT = 60.0  # s after the last arrival
_MARGIN = 1e-6  # relative; of the solver's tolerance


class SolverFailed(RuntimeError):
    """The linear program was not solved to its optimum."""


@dataclass(frozen=True, slots=True)
class Relaxed:
    """``value``: no schedule's total utility is above it. ``loss`` has for each slot how much of
    that at most stems from utilities rounded up to its beginning."""

    value: float
    loss: np.ndarray


@dataclass(frozen=True, slots=True)
class Setup:
    """What does not change with the grid: the goals in order of arrival, the engine, times in s."""

    works: Sequence[Work]
    costs: EngineCosts
    max_batch: int
    network: float
    cut_at: float

    @classmethod
    def of(
        cls,
        works: Sequence[Work],
        costs: EngineCosts,
        max_batch: int,
        network: float,
        cut_at: float | None,
    ) -> Setup:
        """``works`` in order of arrival; ``cut_at`` None: ``CUT`` after the last one."""
        ordered = sorted(works, key=lambda work: work.at)
        end = ordered[-1].at + CUT if cut_at is None else cut_at
        return cls(ordered, costs, max_batch, network, end)

    def shortest(self, work: Work) -> float:
        """s that the segment takes at least."""
        return work.prompt * self.costs.per_prompt_token + work.decodes * self.per_token(work)

    def per_token(self, work: Work) -> float:
        """s of a step that computes a token of ``work`` at least."""
        return self.costs.shortest_step + self.kv_time(work)

    def kv_time(self, work: Work) -> float:
        """s that each of its tokens adds to a step at least: the context of its first one."""
        return self.costs.per_kv_token * work.context(work.decodes)

    def worth(self, work: Work, done: float) -> float:
        """Utility of a segment that the engine completes at ``done``."""
        return work.utility(min(done + self.network, max(self.cut_at, work.at)) - work.at)

    def plain(self, size: int) -> float:
        """What a plain schedule reaches: at most ``size`` goals in progress, the first due first,
        prompts before steps."""
        works, waiting = self.works, sorted(range(len(self.works)), key=self._due)
        now, total = min(work.at for work in works), 0.0
        steps: dict[int, int] = {}
        while waiting or steps:
            here = next((i for i in waiting if works[i].at <= now), None)
            if here is not None and len(steps) < size:
                waiting.remove(here)
                now += works[here].prompt * self.costs.per_prompt_token
                steps[here] = works[here].decodes
                batch = []
            elif steps:
                batch = sorted(steps, key=self._due)[: self.max_batch]
                context = sum(works[i].context(steps[i]) for i in batch)
                now += self.costs.decode(len(batch)) + self.costs.per_kv_token * context
            else:
                now = min(works[i].at for i in waiting)
                continue
            steps |= {i: steps[i] - 1 for i in batch}
            for i in [i for i, left in steps.items() if left == 0]:
                total += self.worth(works[i], now)
                del steps[i]
        return total

    def _due(self, i: int) -> tuple[float, int]:
        return self.works[i].at + self.works[i].utility.ert, i


@dataclass(frozen=True, slots=True)
class _Class:
    """A goal's completion in the slots before ``end``, worth ``utility``; it may use slots from
    ``begin`` on. ``slot`` is the one whose beginning the utility is of."""

    goal: int
    begin: int
    end: int
    slot: int
    utility: float


def classes_of(setup: Setup, goal: int, grid: np.ndarray) -> list[_Class]:
    """When a goal may be completed: slots of equal utility make one class."""
    work = setup.works[goal]
    begin = int(np.searchsorted(grid, work.at, side="right")) - 1
    earliest = work.at + setup.shortest(work)
    classes: list[_Class] = []
    for slot in range(begin, len(grid) - 1):
        if grid[slot + 1] < earliest - 1e-9:
            continue
        utility = setup.worth(work, max(float(grid[slot]), earliest))
        if classes and classes[-1].utility <= utility:
            classes.pop()
        classes.append(_Class(goal, begin, slot + 1, slot, utility))
    return classes


class _Rows:
    """Inequalities, or equations, as they are added: right sides, and (rows, columns, values)."""

    def __init__(self) -> None:
        self.right: list[float] = []
        self.entries: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []

    def add(self, right: Iterable[float]) -> np.ndarray:
        first = len(self.right)
        self.right.extend(right)
        return np.arange(first, len(self.right))

    def put(self, rows: np.ndarray, columns: np.ndarray, values: float | np.ndarray) -> None:
        rows, columns, every = np.broadcast_arrays(rows, columns, values)
        self.entries.append((rows.ravel(), columns.ravel(), every.ravel()))

    def matrix(self, columns: int) -> csr_matrix | None:
        if not self.entries:
            return None
        rows, places, values = map(np.concatenate, zip(*self.entries, strict=True))
        return coo_matrix((values, (rows, places)), (len(self.right), columns)).tocsr()


class _Program:
    """Columns and rows of the program: ``gain`` is maximized, ``above`` are at most their right
    sides."""

    def __init__(self) -> None:
        self.gain: list[float] = []
        self.above, self.equal = _Rows(), _Rows()

    def add_columns(self, count: int, gain: float = 0.0) -> np.ndarray:
        first = len(self.gain)
        self.gain += [gain] * count
        return np.arange(first, len(self.gain))

    def add_amounts(self, count: int, share: np.ndarray, total: float) -> np.ndarray:
        """Columns that sum up to ``total`` times the column ``share``."""
        columns, row = self.add_columns(count), self.equal.add([0.0])
        self.equal.put(row, columns, 1.0)
        self.equal.put(row, share, -total)
        return columns

    def solve(self) -> tuple[float, np.ndarray]:
        count = len(self.gain)
        result = linprog(
            -np.array(self.gain),
            A_ub=self.above.matrix(count),
            b_ub=self.above.right,
            A_eq=self.equal.matrix(count),
            b_eq=self.equal.right,
            method="highs",
        )
        if result.status != 0:
            raise SolverFailed(f"HiGHS: {result.message}")
        return -result.fun, result.x


def relaxed(setup: Setup, grid: np.ndarray) -> Relaxed:
    """The program's value on the slots between the times of ``grid`` (s, ascending, from before the
    first arrival until after all can be served, or the cut)."""
    program, widths = _Program(), np.diff(grid)
    steps = program.add_columns(len(widths))  # decode steps in each slot
    capacity = [program.above.add(widths) for _ in setup.costs.facets]
    batch = program.above.add(np.zeros(len(widths)))
    for rows, (base, _) in zip(capacity, setup.costs.facets, strict=True):
        program.above.put(rows, steps, base)
    program.above.put(batch, steps, -setup.max_batch)
    found: list[tuple[int, _Class]] = []
    for goal in range(len(setup.works)):
        found += _add_goal(program, setup, goal, grid, steps, capacity, batch)
    value, x = program.solve()
    loss = np.zeros(len(widths))
    for column, kind in found:
        if x[column] > 1e-7:
            end = setup.worth(setup.works[kind.goal], float(grid[kind.slot + 1]))
            loss[kind.slot] += x[column] * (kind.utility - end)
    size = sum(abs(gain) for gain in program.gain)
    return Relaxed(value + _MARGIN * (abs(value) + size * _MARGIN), loss)


def _add_goal(
    program: _Program,
    setup: Setup,
    goal: int,
    grid: np.ndarray,
    steps: np.ndarray,
    capacity: list[np.ndarray],
    batch: np.ndarray,
) -> list[tuple[int, _Class]]:
    """The goal's columns: for each class its share and, slot by slot, its tokens and its prompt."""
    work, costs = setup.works[goal], setup.costs
    classes = classes_of(setup, goal, grid)
    prompt = work.prompt * costs.per_prompt_token
    own = setup.per_token(work)
    one = program.equal.add([1.0])
    if grid[-1] >= setup.cut_at - 1e-9:  # not served at all
        never = program.add_columns(1, setup.worth(work, setup.cut_at))
        program.equal.put(one, never, 1.0)
    if not classes:
        return []
    last = classes[-1].end
    begin = classes[0].begin
    together = program.above.add(np.zeros(last - begin))  # at most one token a step
    program.above.put(together, steps[begin:last], -1.0)
    found = []
    for kind in classes:
        slots = np.arange(begin, kind.end)
        share = program.add_columns(1, kind.utility)
        program.equal.put(one, share, 1.0)
        found.append((int(share[0]), kind))
        width = np.diff(np.maximum(grid[begin : kind.end + 1], work.at))
        tokens = prompts = None
        room = program.above.add(np.zeros(len(slots)))  # its own time
        program.above.put(room, share, -width)
        if work.decodes:
            tokens = program.add_amounts(len(slots), share, work.decodes)
            program.above.put(room, tokens, own)
            program.above.put(together[slots - begin], tokens, 1.0)
            program.above.put(batch[slots], tokens, 1.0)
            for rows, (_, slope) in zip(capacity, costs.facets, strict=True):
                program.above.put(rows[slots], tokens, slope + setup.kv_time(work))
        if prompt:
            prompts = program.add_amounts(len(slots), share, prompt)
            program.above.put(room, prompts, 1.0)
            for rows in capacity:
                program.above.put(rows[slots], prompts, 1.0)
        if tokens is not None and prompts is not None and len(slots) > 1:
            # What is decoded by the end of a slot, as a share, is not ahead of the prompt.
            order = program.above.add(np.zeros(len(slots) - 1))
            rows, columns = np.tril_indices(len(slots) - 1)
            program.above.put(order[rows], tokens[columns], 1.0 / work.decodes)
            program.above.put(order[rows], prompts[columns], -1.0 / prompt)
    return found
