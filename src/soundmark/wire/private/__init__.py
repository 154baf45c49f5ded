"""The private contract between Core and its private components, defined once for both sides."""
