"""XR Codes: read, listed, revoked."""
