"""Databases without content, their rows before and after, and connections that hold locks."""
