"""Signatures, sealed values, canonical JSON and secrets."""
