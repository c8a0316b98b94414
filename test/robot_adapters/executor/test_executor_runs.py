"""The executor reports and moves in seeded runs of any input as it did when they were written down.

What it should do is tested by hand in the other files; here any change is seen. Where one is
meant, write them down again: run this file itself, with ``PYTHONPATH=.:test/support``.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from executor_rig import CANCEL, REPLACE, RUN, A, B, Desk

FILE = Path(__file__).parents[2] / "data" / "executor_runs.json"
RUNS = 200
PLANS = (
    "go(2);?look(){go(3)};->True",
    "3{go(1);tick()};seek(2);",
    "_1=ask('what is edible');?_1!=''{go(2)}->_1",
    "?seek(1){go(9)}look();go(4);go(2)",
    "go(1);again();go(2)",
    "2{?look()==True{tick()}go(2)};->'done'",
    "_1=look();_2=tick()+2;go(_2);",
    "spin();go(1)",
)


class Scenario:
    """A robot and the planner in front of it, both of which do anything."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.questions: list[Any] = []
        asked = self.questions.append if self.rng.random() < 0.7 else None
        self.desk = Desk(ask=asked, registered=self.rng.random() < 0.95)
        self.session, self.plan, self.index = 1, A, 0
        self.pieces: list[str] = []
        self.robot_differs()

    def robot_differs(self) -> None:
        robot, rng = self.desk.robot, self.rng
        robot.durations = {name: rng.uniform(0, 9) for name in ("go", "look") if rng.random() < 0.4}
        robot.values["look"] = rng.random() < 0.6
        robot.errors = {"go": "motor"} if rng.random() < 0.1 else {}
        robot.refusals = {"go": "a wall"} if rng.random() < 0.1 else {}
        names = ("check", "start", "poll", "next_poll", "halt", "hold", "observe")
        robot.raises = {rng.choice(names)} if rng.random() < 0.1 else set()

    def next_segment(self) -> None:
        rng, fields = self.rng, {}
        if not self.pieces:
            text = rng.choice(PLANS)
            cuts = sorted(rng.sample(range(1, len(text)), rng.randint(0, 3)))
            self.pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, None], strict=True)]
            again = rng.random() < 0.3
            self.plan = self.plan if again else B if self.plan == A else A
            self.index = self.index if again else 0
            fields["command"] = REPLACE if again or rng.random() < 0.3 else RUN
        text = self.pieces.pop(0)
        self.send(self.index, text, not self.pieces, **fields)
        self.index += 1

    def send(self, index: int, text: str = "", last: bool = False, **fields: Any) -> None:
        session = self.session if self.rng.random() < 0.97 else 99
        self.desk.send(index, text, last, self.plan, session=session, **fields)

    def stray_segment(self) -> None:
        self.send(self.rng.randint(0, 5), "go(1);", command=self.rng.choice((RUN, REPLACE)))

    def cancel(self) -> None:
        self.send(0, command=CANCEL)

    def answer(self) -> None:
        if self.questions:
            asked, rng = self.questions[-1], self.rng
            number = asked.call_number + (rng.random() < 0.2)
            reply = rng.choice((("an apple", ""), ("True", ""), (None, "no model"), (None, "")))
            executor = self.desk.executor
            self.desk.take(executor.on_answer(asked.plan_id, number, *reply, self.desk.now))

    def register(self) -> None:
        self.session += 1
        executor = self.desk.executor
        self.desk.take(executor.new_session(self.session, self.desk.now, self.rng.choice("pq")))
        self.pieces, self.index = [], 0

    def stop_or_rearm(self) -> None:
        executor = self.desk.executor
        action = executor.on_stop if self.rng.random() < 0.4 else executor.on_rearm
        self.desk.take(action(self.desk.now))

    def heartbeat(self) -> None:
        self.desk.alive(self.rng.choice("pppq"))

    def let_time_pass(self) -> None:
        """Not by ``Desk.run``: a robot that changes in the middle of a call may be late."""
        desk, alive = self.desk, self.rng.random() < 0.8
        until = desk.now + self.rng.choice((0.1, 0.5, 1.0, 2.5, self.rng.uniform(0, 8)))
        while (wake := desk.executor.next_wake(desk.now)) is not None and wake <= until:
            desk.now = max(desk.now + 1e-3, wake)
            if alive:
                desk.alive()
            desk.take(desk.executor.tick(desk.now))
        desk.now = until

    def play(self) -> str:
        """What was reported and what the robot did, as a digest."""
        actions: dict[Callable[[], None], int] = {
            self.next_segment: 10, self.let_time_pass: 10, self.answer: 3, self.heartbeat: 2,
            self.stray_segment: 1, self.cancel: 1, self.register: 1, self.stop_or_rearm: 1,
            self.robot_differs: 1,
        }  # fmt: skip
        for _ in range(40):
            self.rng.choices(list(actions), list(actions.values()))[0]()
        wake = self.desk.executor.next_wake(self.desk.now)
        self.desk.take(self.desk.executor.shutdown(self.desk.now))
        reports = [repr(report) for report in self.desk.reports]
        text = repr((reports, self.desk.robot.log, self.questions, wake))
        return hashlib.sha256(text.encode()).hexdigest()[:8]


def digests() -> list[str]:
    return [Scenario(seed).play() for seed in range(RUNS)]


def test_runs_are_those_of_before() -> None:
    assert digests() == json.loads(FILE.read_text())


if __name__ == "__main__":
    FILE.write_text(json.dumps(digests()) + "\n")
