"""Clients of the private components, in the words of the domain."""
