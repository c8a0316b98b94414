"""Figures about speed and soundness, measured side by side in one run: ``make bench``."""
