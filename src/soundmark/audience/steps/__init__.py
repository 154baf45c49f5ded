"""Pieces of a transaction that take several statements."""
