"""Entitlements that the operator grants to organisations."""
