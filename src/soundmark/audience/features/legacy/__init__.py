"""Aggregates of the time before XR v1: kept apart, never mixed with what is verified."""
