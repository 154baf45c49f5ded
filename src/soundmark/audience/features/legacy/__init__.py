"""Aggregates from before XR v1, which are never mixed with verified events."""
