"""The stand-in of the card provider: Stripe at API version 2025-03-31.basil."""
