"""The public views of records, for every feature that answers with one."""
