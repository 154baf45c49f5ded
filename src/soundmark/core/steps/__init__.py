"""Pieces of a transaction that several commands share. A step takes an open transaction and opens none."""
