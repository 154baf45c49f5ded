"""The published shapes, for Core's responses and for their JSON Schemas."""
