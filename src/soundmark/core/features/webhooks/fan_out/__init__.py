"""From acts to events and deliveries."""
