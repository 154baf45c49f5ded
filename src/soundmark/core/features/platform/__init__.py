"""What the operator of the platform does."""
