"""Reading requests: bodies, queries, credentials, addresses, and routes."""
