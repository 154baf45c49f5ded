"""The catalogue, which platform administrators keep."""
