"""Audience integrations."""
