"""Campaigns: what Codes belong to, when such may be issued, and how all of them are stopped."""
