"""Benchmarks of Soundmark: each module is a program, and `python -m bench` runs them."""
