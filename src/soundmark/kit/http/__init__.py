"""The HTTP edge: serving, reading, refusing, and calls between components."""
