"""Sums and counts of spans against a look at every moment."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timely_llm.bench.burst import Span
from timely_llm.recording.spans import Concurrency, common, overlap

SPANS = st.lists(
    st.tuples(st.integers(0, 20), st.integers(1, 9)).map(lambda pair: Span(pair[0], sum(pair))),
    max_size=6,
)


def covered(spans: list[Span], time: float) -> int:
    return sum(span.start <= time < span.end for span in spans)


@given(SPANS, st.integers(0, 30), st.integers(0, 30))
def test_overlap_is_what_lies_between_two_times(spans, begun, ended):
    expected = sum(covered(spans, time) for time in range(begun, ended))
    assert overlap(spans, begun, ended) == pytest.approx(expected)


@given(SPANS, SPANS)
def test_what_two_have_in_common_is_counted_once_for_each_pair(own, other):
    shared = common(own, other)
    assert all(span.start < span.end for span in shared)
    for time in range(30):
        assert covered(shared, time) == covered(own, time) * covered(other, time)


@given(SPANS)
def test_concurrency_is_how_many_there_are(spans):
    count = Concurrency(spans)
    assert [count.at(time) for time in range(31)] == [covered(spans, time) for time in range(31)]
    changes = count.changes()
    assert [time for time, _ in changes] == sorted({t for s in spans for t in (s.start, s.end)})
    assert all(number == covered(spans, time) for time, number in changes)
