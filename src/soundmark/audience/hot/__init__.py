"""The hot path of an event: bytes in, one commit for many events, bytes out."""
