"""Settings of the platform."""
