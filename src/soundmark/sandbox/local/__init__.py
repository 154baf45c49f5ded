"""The stand-in of the local provider: Flouci, API version 2."""
