"""Codes, campaigns, and the keys that sign them."""
