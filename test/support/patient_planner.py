"""A planner that waits for its clients as long as it takes, so that no test hurries."""

from timely_llm.ros import planner_node

__all__ = ["main"]

planner_node._FETCH = 3600.0
main = planner_node.main
