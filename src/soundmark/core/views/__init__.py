"""The public views of records, for every feature that returns one."""
