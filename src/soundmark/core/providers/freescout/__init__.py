"""The support desk: FreeScout with its module for the API and webhooks."""
