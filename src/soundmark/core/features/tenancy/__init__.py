"""Organisations, and the people and keys that act in them."""
