"""Offers, checkouts with the page on which people wait for them, and subscriptions."""
