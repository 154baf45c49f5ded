"""The card provider, Stripe."""
