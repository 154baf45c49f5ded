"""Reports on measured events."""
