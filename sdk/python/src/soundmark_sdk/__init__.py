"""Receive, resolve and verify XR Codes broadcast as sound."""
