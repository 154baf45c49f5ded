"""Deleting data that is older than its retention."""
