"""Members of an organisation."""
