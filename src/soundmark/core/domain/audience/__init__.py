"""Core's view of Audience integrations."""
