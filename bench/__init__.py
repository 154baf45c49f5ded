"""Benchmarks of Soundmark: each module is a program, and `python -m bench` runs them."""

import importlib

from soundmark.kit.optional_imports import UNUSED, hide_optional

# As a server of the command line does (soundmark/cli/__init__.py), so that the memory that is measured is its own.
with hide_optional(*UNUSED):
    importlib.import_module("structlog")
    importlib.import_module("uvicorn")
