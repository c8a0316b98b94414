"""Views and engine states for tests of policies: one by hand, or any mixture of them."""

from __future__ import annotations

from hypothesis import strategies as st

from timely_llm.estimation.step_time import StepLatency
from timely_llm.policies import EngineState, View
from timely_llm.protocols.utility import PRESETS, Urgency

LATENCY = StepLatency((0.02,), per_sequence=0.002, per_prefill_token=1e-4)


def view(number: int, **fields) -> View:
    """A first segment of a NORMAL goal that arrived at 0 and waits."""
    defaults = {
        "id": f"p{number}",
        "number": number,
        "segment": 0,
        "arrival": 0.0,
        "origin": 0.0,
        "due": 1.0,
        "utility": PRESETS[Urgency.NORMAL],
        "urgency": 3,
        "tokens_left": 4.0,
        "worst_tokens_left": 10.0,
        "uncached": 0,
        "kv_tokens": 0,
        "running": False,
        "mid_segment": False,
        "network": 0.01,
    }
    return View(**(defaults | fields))


def state(max_batch: int = 4, free: int = 100_000, latency=LATENCY, steps: int = 0) -> EngineState:
    return EngineState(max_batch, latency, free, 100_000, steps)


@st.composite
def views(draw) -> list[View]:
    """Any mixture of goals, numbered as they arrived."""
    made = []
    for number in range(draw(st.integers(0, 12))):
        first = draw(st.booleans())
        arrival = draw(st.floats(0, 100))
        origin = arrival if first else draw(st.floats(0, 120))
        begun = not first or draw(st.booleans())
        urgency = draw(st.sampled_from(sorted(PRESETS)))
        utility = PRESETS[urgency]
        mean = draw(st.floats(1, 20))
        written = draw(st.integers(0, 120)) if begun else 0
        made.append(
            view(
                number,
                segment=0 if first else draw(st.integers(1, 9)),
                arrival=arrival,
                origin=origin,
                due=arrival + utility.ert if first else origin,
                utility=utility if first else utility.continuation(),
                urgency=urgency,
                tokens_left=mean,
                worst_tokens_left=mean + draw(st.floats(0, 20)),
                uncached=draw(st.integers(0, 400)),
                kv_tokens=draw(st.integers(1, 400)) if begun else 0,
                running=begun and draw(st.booleans()),
                mid_segment=begun and draw(st.booleans()),
                ttft=draw(st.sampled_from([0.0, 0.25, 1.0])),
                tpot=draw(st.sampled_from([0.0, 0.05, 0.12, 0.25, 2.0])),
                written=written,
                first_token=arrival + draw(st.floats(0, 5)) if written else -1.0,
                predicted=draw(st.sampled_from([-1.0, 1.0, 30.0, 30.0, 400.0])),
            )
        )
    return made


STATES = st.builds(
    EngineState,
    st.integers(1, 8),
    st.just(LATENCY),
    st.integers(0, 3000),
    st.just(3000),
    st.integers(0, 1000),
)
