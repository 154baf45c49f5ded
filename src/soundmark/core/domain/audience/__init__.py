"""Audience integrations, as Core knows them."""
