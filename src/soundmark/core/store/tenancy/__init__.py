"""Tables of organisations, projects, members, keys and the audit log."""
