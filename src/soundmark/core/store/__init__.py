"""SQL: one module for each family of tables, one function for each statement."""
