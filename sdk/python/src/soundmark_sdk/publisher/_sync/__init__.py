# Generated from `../_async/__init__.py` by `make_blocking.py`: change that file, then run this program.
"""The public classes: those for asyncio are written by hand in `_async`; `make_blocking.py` generates `_sync`."""
