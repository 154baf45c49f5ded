"""Purchases, offers and subscriptions, as the providers report them."""
