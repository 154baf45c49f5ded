"""The page on which a customer of the card provider manages their subscriptions."""
