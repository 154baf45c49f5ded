"""What Soundmark does, measured: each module is a program, `python -m bench` runs the benchmarks."""
