"""Tenants' control of Audience integrations, which Core records in the audit log."""
