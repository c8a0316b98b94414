"""What policies are compared with: the exact optimum of small bursts, else a bound."""

import pytest

from timely_llm.bench.config import Conditions, engine_of
from timely_llm.bench.engine_costs import EngineCosts, works_of
from timely_llm.bench.exact import TooLarge, exact
from timely_llm.bench.optimum import bursts, kinds, problems
from timely_llm.protocols.utility import TimeUtility, Urgency
from timely_llm.simulation import trace_file
from timely_llm.simulation.trace import Arrival, Task, Trace


def test_a_burst_too_large_for_the_exact_search_has_a_bound(tmp_path):
    """Two bursts of six long texts."""
    words = tuple([" word"] * 99 + ["."])
    utility = TimeUtility(1.0, -1.0, 1.0)
    task = Task("story", "text", "x", words, utility, Urgency.NORMAL, prompt_tokens=20)
    arrivals = [Arrival(at, f"r{at}{i}", task, ()) for at in (0.0, 40.0) for i in range(6)]
    path = tmp_path / "stories.jsonl"
    trace_file.write(Trace("stories", tuple(arrivals)), path)
    asked = problems("rtx4090-llama3-8b", str(path), 1.0, 0, 6)
    assert [problem.burst for problem in asked] == [0, 1]
    arrivals = bursts(trace_file.read(path), 1.0)[0]
    costs = EngineCosts.of(engine_of("rtx4090-llama3-8b").latency, 6)
    with pytest.raises(TooLarge):
        exact(works_of(arrivals, kinds()), costs, 6)
    assert all(-60 < p.most(Conditions()) < 6 for p in asked)
