"""Codes: their lists, sounds and addresses, and the inputs of the published vectors."""
