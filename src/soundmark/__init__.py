"""Soundmark: signed, revocable intents, broadcast as sound."""
