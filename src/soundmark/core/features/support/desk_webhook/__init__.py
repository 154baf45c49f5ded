"""The webhook of the support desk."""
