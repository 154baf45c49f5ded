"""Server API keys."""
