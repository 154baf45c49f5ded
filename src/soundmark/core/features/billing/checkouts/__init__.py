"""Making checkouts, and ending those that nobody paid."""
