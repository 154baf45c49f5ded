"""How much was measured in a month."""
