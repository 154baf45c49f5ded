"""Support tickets, and the webhook of the support desk."""
