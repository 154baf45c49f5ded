"""The local-currency provider, Flouci."""
