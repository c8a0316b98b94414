"""Strict reading of what comes from outside (YAML, JSON, names), and what goes out. Pure."""
