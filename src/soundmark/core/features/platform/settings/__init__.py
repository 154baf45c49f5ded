"""Platform settings."""
