"""Strict reading of what comes from outside: YAML, JSON, names. Pure."""
