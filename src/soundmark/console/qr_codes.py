"""QR codes (ISO/IEC 18004), drawn on the server as SVG."""

from functools import lru_cache
from typing import Final

import segno
from markupsafe import Markup

_QUIET_ZONE: Final = 4  # Modules of the background on each side. Source: ISO/IEC 18004.


@lru_cache(maxsize=8)
def draw_qr_code(text: str) -> Markup:
    """Return an inline SVG of a text's QR code, the smallest that there is of it.

    It is black on white in every theme, because many readers see no light code on a dark ground, and it has neither
    styles nor scripts, which the pages' policy forbids.
    """
    code = segno.make(text, error="l", micro=False)
    svg = code.svg_inline(border=_QUIET_ZONE, dark="#000", light="#fff", omitsize=True, svgclass=None, lineclass=None)
    return Markup(svg)  # noqa: S704 - the text is in it as squares alone
