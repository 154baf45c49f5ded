"""Audience measurement, as Core's tenants see it."""
