"""Debian's Chromium, and what its pages must keep."""
