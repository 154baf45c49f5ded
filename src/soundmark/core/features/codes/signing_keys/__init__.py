"""Core's signing keys: made, staged, activated, retired."""
