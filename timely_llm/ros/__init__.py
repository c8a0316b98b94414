"""The edges to ROS 2: the planner node and the conversions of messages."""
