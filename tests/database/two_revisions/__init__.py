"""A component with a second revision, as a model for the next one of Core and Audience."""
