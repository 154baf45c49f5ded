"""Subscriptions: the list of an organisation's, and the jobs that end them and carry entitlements."""
