"""The resolve path: bytes in, bytes out."""
