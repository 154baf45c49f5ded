"""Outbound webhooks: endpoints, and the events that are sent to them."""
