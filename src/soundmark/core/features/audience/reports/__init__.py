"""Audience reports."""
