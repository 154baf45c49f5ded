"""What an organisation used this month, and its quotas."""
