"""Pure records and rules."""
