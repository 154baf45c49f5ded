"""Clients of the private components."""
