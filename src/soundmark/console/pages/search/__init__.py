"""The search for pages, ids and names."""
