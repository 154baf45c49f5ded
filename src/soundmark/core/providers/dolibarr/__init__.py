"""The accounting system, whose HTTP API is that of Dolibarr 22."""
