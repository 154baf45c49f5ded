"""The files in deploy/: what they run, with which settings, and the real programs that check them."""
