"""Its revisions."""
