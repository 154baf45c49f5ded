"""Audience: measurement, a private component with a database of its own."""
