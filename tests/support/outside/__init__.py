"""The systems outside Soundmark, which answer as in production and misbehave on command."""
