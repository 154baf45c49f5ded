"""Opening, listing and reading support tickets."""
