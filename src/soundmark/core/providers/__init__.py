"""Clients of other people's servers."""
