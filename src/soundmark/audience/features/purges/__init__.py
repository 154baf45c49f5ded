"""Purging tenants that leave."""
