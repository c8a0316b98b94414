"""The machine: processes, signals and files that others write."""
