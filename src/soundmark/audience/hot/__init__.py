"""The way of an event: bytes in, one commit for many, bytes out."""
