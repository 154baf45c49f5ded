"""Audience events: received for publishers that can only reach Core, and judged by Audience."""
