"""The import of daily totals from before XR v1."""
