"""Parts of a running process that follow the database: the keyring, the platform settings, the audit chain."""
