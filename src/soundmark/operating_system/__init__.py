"""What depends on the operating system: users, private files, signals."""
