"""Judges plans by what happens: they are written by a model and flown in simulated worlds."""
