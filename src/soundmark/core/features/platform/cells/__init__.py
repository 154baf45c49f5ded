"""The cells that an operator names."""
