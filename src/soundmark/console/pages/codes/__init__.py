"""The pages of Codes."""
