"""Integrations: creating, listing, changing and revoking them."""
