"""The console as a browser without scripts sees it."""
