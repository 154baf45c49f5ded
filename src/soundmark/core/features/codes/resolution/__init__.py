"""What receivers ask: the route itself is `soundmark.core.hot`."""
