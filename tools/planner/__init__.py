"""Parts of the tools that make the bundled planner's data and weights. No ROS, no vLLM."""
