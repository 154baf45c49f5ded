"""The owner of a credential."""
