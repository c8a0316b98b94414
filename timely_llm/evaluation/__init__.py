"""Evaluation: what became of plans, in numbers and tables."""
