"""The page to return to after signing in, which a link may name."""

import re
from typing import Final

FIRST_PAGE: Final = "/organizations"
# One slash, then neither a slash nor a backslash, which browsers read as the beginning of another host.
_LOCAL: Final = re.compile(r"/(?![/\\])[\x21-\x7e]{0,2000}")


def check_return_path(path: str) -> str:
    """Return a path of the console as it is, and the first page for anything that might lead elsewhere."""
    return path if _LOCAL.fullmatch(path) and "\\" not in path else FIRST_PAGE
