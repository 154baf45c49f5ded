"""Clients of third-party servers."""
