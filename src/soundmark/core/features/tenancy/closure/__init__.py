"""Closing an organisation or a project: the preflight, the deletion and its certificate."""
