"""Whether this task has a transaction open, which calls of unknown duration must not wait inside."""

from contextvars import ContextVar
from typing import Final

is_open: Final[ContextVar[bool]] = ContextVar("open_transaction", default=False)


def assert_no_transaction(what: str) -> None:
    """Assert that `what`, whose duration we do not control, does not run inside a transaction."""
    assert not is_open.get(), f"{what} inside a transaction"
