"""The robot's side of a plan: segments in, calls out, reports. Pure: no ROS, no SDK, no clock."""
