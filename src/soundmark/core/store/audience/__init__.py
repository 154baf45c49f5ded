"""Tables of Audience entitlements."""
