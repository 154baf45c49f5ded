"""XR Codes: issued, read, revoked, rendered."""
