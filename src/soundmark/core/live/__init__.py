"""Parts of a running process that follow the database, such as the keyring and the audit chain."""
