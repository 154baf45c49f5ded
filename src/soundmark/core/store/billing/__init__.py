"""Tables of the catalogue, checkouts, subscriptions, payment events and draft invoices."""
