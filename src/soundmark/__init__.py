"""Soundmark: signed, revocable intents, broadcast as sound."""

from importlib.metadata import version as _version
from typing import Final

__version__: Final = _version("soundmark")
