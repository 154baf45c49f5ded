"""Codes as sound."""
