"""Integrations: made, listed, revoked, and what is changed of them."""
