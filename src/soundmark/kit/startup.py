"""The errors that keep a component from starting, in words for its operator."""

import contextlib
from collections.abc import Iterator

from soundmark.kit.crypto.sealing import SealBroken
from soundmark.kit.http.responses.problems import DatabaseUnavailable
from soundmark.kit.postgres.schema_version import SchemaOutdated
from soundmark.kit.postgres.sessions import CannotConnect


class CannotStart(Exception):
    """An operator must fix something first; the message is one line that names it, without secrets."""


@contextlib.contextmanager
def explain_failures(component: str, *, sealed: str) -> Iterator[None]:
    """Raise CannotStart for failures of a starting component that its operator can fix.

    `sealed` says in words what the component's master key must open.

    Raises: CannotStart.
    """
    try:
        yield
    except CannotConnect as refused:
        raise CannotStart(f"{component}'s database {refused.reason}") from None
    except DatabaseUnavailable:
        raise CannotStart(f"{component}'s database does not answer") from None
    except SchemaOutdated as outdated:
        raise CannotStart(str(outdated)) from None
    except SealBroken as broken:
        raise CannotStart(f"this master key does not open {sealed}: {broken}") from None
