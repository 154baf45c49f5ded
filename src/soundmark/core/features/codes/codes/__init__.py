"""Reading, listing and revoking Codes."""
