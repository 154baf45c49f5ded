"""Core, the only component that tenants and receivers call."""
