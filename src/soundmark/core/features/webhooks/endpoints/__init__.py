"""Endpoints, their deliveries and their events."""
