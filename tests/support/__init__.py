"""What the tests make: tenants, callers, servers that misbehave, and rows that no route writes."""
