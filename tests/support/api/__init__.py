"""Calls of the public API: clients, callers of every kind, and one valid call of each operation."""
