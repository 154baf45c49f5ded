"""What an organisation has used of what it may."""
