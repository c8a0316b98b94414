"""The published tasks and workloads, by name."""
