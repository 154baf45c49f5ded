"""Audience events: received here for publishers that reach only Core, and judged by Audience."""
