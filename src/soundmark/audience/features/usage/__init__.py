"""An organisation's events in a month."""
