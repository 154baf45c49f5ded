"""Consumers of outbound webhooks, and processes that deliver to them."""
