"""Texts of the test's own in place of what people typed, in every answer of Core."""

from collections.abc import Callable
from typing import Any, Final

# The members of Core's answers that hold what people typed.
TEXTS: Final = frozenset(
    {
        *("name", "email", "issuer", "title", "description", "subject", "plan_name", "suspension_reason", "body"),
        *("organization_name", "contract_reference"),
    }
)


def plant(document: Any, write: Callable[[str], str]) -> Any:
    """Return an answer of Core in which `write` gives what people typed, by the name of the member."""
    match document:
        case dict():
            return {
                key: write(key) if key in TEXTS and isinstance(value, str) else plant(value, write)
                for key, value in document.items()
            }
        case list():
            return [plant(each, write) for each in document]
        case _:
            return document
