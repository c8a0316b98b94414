"""The planner without its edges: state, events in, commands out, and the loop. Pure."""
