"""Reports: what was measured, counted."""
