"""Tables of platform settings, and every sealed column."""
