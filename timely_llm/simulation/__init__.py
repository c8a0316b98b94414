"""A trace replayed around the real planner: on simulated time, or on an engine that computes."""
