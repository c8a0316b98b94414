"""Policies compared on workloads, and engines measured: ``timely-llm bench`` and ``profile``."""

DEFAULT_PRESET = "rtx4090-llama3-8b"
