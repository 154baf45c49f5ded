"""The entitlements that Core sends."""
