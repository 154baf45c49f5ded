"""Invitations."""
