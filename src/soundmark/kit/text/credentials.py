"""Bearer credentials as people keep them: alone, in quotes, or as a line of an environment file."""

import re
from typing import Final

_CHARS_MAX: Final = 8192
_ASSIGNED: Final = re.compile(r"(?:export\s+)?[A-Za-z_][A-Za-z0-9_]*\s*=\s*(.*[^=\s].*)")
_ASSIGNED_NOTHING: Final = re.compile(r"[A-Z_][A-Z0-9_]*=")
# RFC 6750, section 2.1: API keys, the operator token and access tokens all have this syntax.
_BEARER: Final = re.compile(r"[A-Za-z0-9._~+/-]+=*")


def read_credential(text: str) -> str:
    """Return the one bearer credential in `text`, without the quotes around it and `NAME=` before it.

    Raises: ValueError, which does not repeat the text.
    """
    text = text.removeprefix("\ufeff").strip()
    assigned = _ASSIGNED.fullmatch(text)
    bare = assigned[1] if assigned is not None else text
    if len(bare) > 1 and bare[0] == bare[-1] and bare[0] in "\"'":
        bare = bare[1:-1].strip()
    is_bearer = len(bare) <= _CHARS_MAX and _BEARER.fullmatch(bare) is not None
    if not is_bearer or _ASSIGNED_NOTHING.fullmatch(bare) is not None:
        raise ValueError("must contain only one API key or access token, optionally after NAME= and in quotes")
    return bare
