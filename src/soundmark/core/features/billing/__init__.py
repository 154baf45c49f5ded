"""The catalogue, offers, checkouts, subscriptions, payments and draft invoices."""
