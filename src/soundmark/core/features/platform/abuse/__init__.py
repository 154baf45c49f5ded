"""Reports of abuse: taken from everybody, and worked on by administrators of the platform."""
