"""Actions in order of time, then in order of asking."""

import math

from timely_llm.simulation.event_queue import EventQueue


def test_what_is_due_is_done_in_order_of_time_then_of_asking():
    queue, done = EventQueue(), []

    def note(time: float, name: str) -> None:
        done.append((time, name))
        if name == "b":
            queue.at(2.0, note, "d")
            queue.at(3.5, note, "e")

    for time, name in ((2.0, "a"), (1.0, "b"), (2.0, "c"), (4.0, "f")):
        queue.at(time, note, name)
    assert queue.next_at == 1.0
    queue.run(3.5)
    assert done == [(1.0, "b"), (2.0, "a"), (2.0, "c"), (2.0, "d"), (3.5, "e")]
    assert queue.next_at == 4.0
    queue.run(3.99)
    assert len(done) == 5
    queue.run(4.0)
    assert done[-1] == (4.0, "f")
    assert queue.next_at == math.inf
