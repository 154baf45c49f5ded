"""Codes, campaigns and signing keys."""
