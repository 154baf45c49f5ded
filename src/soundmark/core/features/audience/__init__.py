"""Audience measurement, from the point of view of Core's tenants."""
