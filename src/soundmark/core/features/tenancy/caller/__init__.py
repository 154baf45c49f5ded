"""Who a credential belongs to."""
