"""Organisations, the callers that act in them, and the audit log."""
