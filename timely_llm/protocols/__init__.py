"""What planner, robots and engines tell each other: values and protocols. Pure."""
