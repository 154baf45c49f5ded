"""The card provider, Stripe."""

import importlib

from soundmark.kit.optional_imports import hide_optional

# Its SDK would load an HTTP client of its own for each of these; `transport` is the only one that we use.
with hide_optional("requests", "pycurl", "httpx", "aiohttp"):
    importlib.import_module("stripe")
