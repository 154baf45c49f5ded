"""Notifications of the payment providers, and asking the providers again."""
