"""Webhook endpoints, their deliveries, and events that are sent again."""
