"""Processes that tests start, time and kill, and what a run of tests may not leave behind."""
