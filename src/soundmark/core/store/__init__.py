"""SQL: one module for a table family, one function for a statement."""
