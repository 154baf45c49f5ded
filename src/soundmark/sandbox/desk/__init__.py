"""The stand-in of the support desk: FreeScout with its module for the API and webhooks."""
