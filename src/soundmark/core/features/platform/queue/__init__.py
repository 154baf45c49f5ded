"""Jobs of the worker that failed or run again."""
