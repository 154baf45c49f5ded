"""The public page that hears Codes."""
