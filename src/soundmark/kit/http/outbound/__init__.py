"""Calling other servers."""
