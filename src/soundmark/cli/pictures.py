"""The modules that draw. They need matplotlib, which only the extra `pictures` installs."""

import importlib
from typing import Any, Final

from soundmark.cli import Refused

_LIBRARY: Final = "matplotlib"


class NoPictures(Refused):
    """Matplotlib is not installed; the message says how to install it."""


def load_drawing(name: str) -> Any:
    """Import one of the modules that draw: `spectrogram` or `report_picture`.

    Call this only when there is something to draw: loading matplotlib takes half a second, and a deployment does
    without it.

    Raises: NoPictures.
    """
    try:
        return importlib.import_module(f"soundmark.cli.{name}")
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.partition(".")[0] != _LIBRARY:
            raise
        raise NoPictures(
            f"drawing needs {_LIBRARY}, which the extra soundmark[pictures] installs; run `pip install {_LIBRARY}`"
        ) from None
