"""The bench: workloads times policies, measured, bounded, plotted; and profiles of engines."""
