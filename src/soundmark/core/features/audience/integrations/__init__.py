"""Audience, as tenants control it: through Core, which tells of it in the audit log."""
