"""Mutation runs in forked processes: change one place of a module at a time, and see whether its tests notice."""
