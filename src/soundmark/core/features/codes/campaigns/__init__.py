"""Campaigns: groups of Codes with a schedule, which can be stopped all at once."""
