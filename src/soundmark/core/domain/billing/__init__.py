"""The catalogue, checkouts, subscriptions and payments."""
