"""Every organisation, for administrators of the platform, who suspend and restore them."""
