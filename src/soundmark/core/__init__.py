"""Core: the only public control plane."""
