"""Reports of Audience, as charts, tables and exports."""
