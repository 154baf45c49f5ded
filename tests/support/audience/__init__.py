"""Audience, the events that it is sent, and the reports that it must answer."""
