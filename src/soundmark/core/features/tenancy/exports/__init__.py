"""Archives: everything that an organisation or a project can take with it, in one signed file."""
