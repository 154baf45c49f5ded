"""The public classes: those for asyncio are written by hand in `_async`; `make_blocking.py` generates `_sync`."""
