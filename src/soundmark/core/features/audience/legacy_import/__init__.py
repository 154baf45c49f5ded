"""The import of aggregates that were measured before version 1."""
