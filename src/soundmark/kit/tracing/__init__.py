"""Traces: the W3C context that travels with requests, calls, jobs and webhooks, and spans for those who want them."""
