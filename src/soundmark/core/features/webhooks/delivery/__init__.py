"""Sending events to endpoints."""
