"""The page to return to after signing in, which a link may name."""

import re
from typing import Final

FIRST_PAGE: Final = "/"
# The longest is that of 100 selected Codes, some 3,400 characters. Five attempts to sign in, each with such a path,
# still fit into the 64 KiB of a request head, beside the largest session and a kept form.
PATH_CHARS_MAX: Final = 4_000
# One slash, then neither a slash nor a backslash, which browsers read as the beginning of another host.
_LOCAL: Final = re.compile(rf"/(?![/\\])[\x21-\x7e]{{0,{PATH_CHARS_MAX - 1}}}")


def check_return_path(path: str) -> str:
    """Return a path of the console as it is, and the first page for anything that might lead elsewhere."""
    return path if _LOCAL.fullmatch(path) and "\\" not in path else FIRST_PAGE
