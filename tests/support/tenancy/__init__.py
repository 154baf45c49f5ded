"""Organisations, their people and settings, and what is left of them."""
