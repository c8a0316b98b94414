"""Bags: written, read, replayed under other policies, and shown as a page."""
