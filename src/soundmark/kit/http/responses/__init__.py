"""Writing responses: problems, documents, downloads."""
