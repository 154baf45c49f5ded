"""Audience events: taken here for publishers that reach Core only, and judged by Audience."""
