"""Organisations, who may act in them, and what is recorded about it."""
