"""The watch over the engine's loop, on times given by hand."""

from timely_llm.ros.engine_thread import Watch


def test_a_loop_that_turns_is_never_late() -> None:
    watch = Watch(2.0, 0.5)
    assert not any(watch.look(turn, 0.5 * turn) for turn in range(100))


def test_a_loop_that_does_not_is_late_after_the_limit() -> None:
    watch = Watch(2.0, 0.5)
    looks = [watch.look(7, 0.5 * i) for i in range(7)]
    assert looks == [False] * 5 + [True] * 2
    assert not watch.look(8, 3.5)


def test_a_time_in_which_nobody_looked_is_not_the_engine_s() -> None:
    watch = Watch(2.0, 0.5)
    watch.look(7, 0.0)
    assert not watch.look(7, 1000.0)
    assert not watch.look(7, 1000.5)
    assert watch.look(7, 1001.5)
