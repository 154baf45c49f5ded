"""Suspensions of organisations, of which Core sends copies."""
