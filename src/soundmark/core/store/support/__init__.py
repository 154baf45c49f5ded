"""Support tickets, and what the desk delivers about them."""
