"""What Core says an organisation is entitled to."""
