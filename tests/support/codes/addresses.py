"""When a Code's address begins with a prefix, in plain Python, and addresses that are hard to compare."""

import string
from typing import Any, Final

HOSTILE_URLS: Final[tuple[Any, ...]] = (
    "https://example.org",
    "HTTPS://Example.ORG/Tonight",
    "https://example.org/tonight",
    "https://example.org:443/tonight",
    "https://example.org?Q=1",
    "https://example.org#Top",
    "https://user@Example.org/",
    "https://example.org.evil.example/",
    "http:/example.org/Tonight",
    "https://bücher.example/",
    "https://BÜCHER.example/",
    "https://xn--bcher-kva.example/",
    "https://\u212aelvin.example/",  # The Kelvin sign, whose lower case is an ASCII letter.
    "mailto:Ada@example.org",
    "mailto:ada@example.org",
    "100%_off\\",
    "100%25_off\\",
    "a\0b://C/D",
    "://X/Y",
    "a://b://C/D",
    "\U0001f600\uffff\U0010ffff://E/\U0010ffff",
    "\x7f\x80ÿ",
    "",
    " https://example.org",
    "x" * 199 + "://Y/Z",
    "x" * 198 + "Y/Z",
    "https://" + "é" * 300 + "/A",
    None,
    7,
    ["https://example.org"],
    {"url": "https://example.org"},
)


def begins_with(url: Any, prefix: str) -> bool:
    """Return whether the address begins with the prefix: character by character, as the contract says."""
    if not isinstance(url, str) or len(url) < len(prefix):
        return False
    scheme_ends = url.find("://")
    path_begins = len(url)
    if scheme_ends >= 0:
        path_begins = min([at for at in range(scheme_ends + 3, len(url)) if url[at] in "/?#"], default=len(url))
    return all(
        mine == theirs or (at < path_begins and _fold(mine) == _fold(theirs))
        for at, (mine, theirs) in enumerate(zip(url, prefix, strict=False))
    )


def _fold(character: str) -> str:
    return character.lower() if character in string.ascii_uppercase else character
