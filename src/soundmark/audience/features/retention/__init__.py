"""Forgetting what is older than it may be."""
