"""The results of operations that Core requested."""
