"""The transparency log: how it grows, and how it is served."""
