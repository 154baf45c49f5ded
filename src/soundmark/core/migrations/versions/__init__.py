"""Revisions of the database schema."""
