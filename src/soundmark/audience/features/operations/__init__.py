"""What was done for an operation of Core's."""
