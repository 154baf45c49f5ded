"""The key that every integration trusts."""
