"""The web console: server-rendered pages, a client of Core's public API, without a database."""
