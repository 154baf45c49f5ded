"""What an organisation has used of its quotas."""
