"""The life of Core's signing keys: creation, staging, activation, retirement."""
