"""Optional parts of libraries that no process of ours uses, and that would cost each of them memory and time."""

import contextlib
import sys
from collections.abc import Iterator
from typing import Any, Final

# By structlog: what draws tracebacks for a terminal, where `kit.log` writes ours, and greenlets. By uvicorn: what
# watches files. By FastAPI: addresses of people in OpenAPI documents; `kit.text.validation` loads it when needed.
UNUSED: Final = ("rich", "greenlet", "watchfiles", "email_validator")


@contextlib.contextmanager
def hide_optional(*names: str) -> Iterator[None]:
    """Let a library that is imported in the block find none of the modules `names`, as if they were not installed.

    Modules that are loaded already are not hidden.
    """
    modules: dict[str, Any] = sys.modules
    hidden = [name for name in names if name not in modules]
    modules.update(dict.fromkeys(hidden))  # None: an import fails.
    try:
        yield
    finally:
        for name in hidden:
            del modules[name]
