"""Organisations, and everybody and everything that acts in them."""
