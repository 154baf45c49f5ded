"""docs/policy.md, generated from the policy table and the operations that name its actions.

After an intended change: `.venv/bin/python tests/policy_page.py`, then read the diff.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from support.api.operations import list_operations

from soundmark.core.access.policy import POLICY, Rule

PAGE: Final = Path(__file__).parent.parent / "docs" / "policy.md"
RENEW: Final = "if it was changed on purpose, run `.venv/bin/python tests/policy_page.py` and review the diff"

_ROLES: Final = ("owner", "admin", "member", "billing")
_HEAD: Final = """\
# Who may do what

Printed from `src/soundmark/core/access/policy.py`; a test fails when the two differ. The sweep in
`tests/core/access/test_sweep.py` carries out every operation below as every kind of caller, and compares the answers
with this table. OpenAPI states the same for each operation in `x-svc-access`.

Credentials are distinguished by their prefix: `xak_…` is an API key, `xop_…` the operator token (only if no identity
provider is configured, only from the machine itself, and then equivalent to a person), and anything else is a person's
access token. No credential, or one that is expired, revoked or made for another client, is `401 unauthenticated`; a
person whose e-mail address is not verified is `403 email_not_verified`. Everything in an organisation is `404
organization_not_found` for people who are not members of it. An API key belongs to one project and finds nothing of
another.
"""
_INSIDE: Final = """
## Inside an organisation

A member whose role is not listed gets `403 forbidden`, a member without a required second factor `403 mfa_required`, a
key without the scope `403 insufficient_scope`, and any key `403 user_token_required` if no scope is listed.
"""
_OUTSIDE: Final = """
## In no organisation

Any person with a verified address, or administrators of the platform alone (`403 platform_admin_required` for the
others). An API key is `403 user_token_required` unless every key may. To administer the platform opens no
organisation.
"""
_PUBLIC: Final = """
## Public operations

These need no credential and ignore one.
"""

Operations = Mapping[str | None, list[str]]


def printed() -> str:
    """Return the page as the code has it now."""
    operations = _operations()
    inside = {action: rule for action, rule in POLICY.items() if rule.roles is not None}
    outside = {action: rule for action, rule in POLICY.items() if rule.roles is None}
    parts = [
        _HEAD,
        _INSIDE,
        _table(("action", "operation", *_ROLES, "second factor", "API key"), _inside(inside, operations)),
        _notes(inside),
        _OUTSIDE,
        _table(("action", "operation", "who", "second factor", "API key"), _outside(outside, operations)),
        _notes(outside),
        _PUBLIC,
        _table(("operation", "but"), _public()),
    ]
    return "".join(parts)


def _operations() -> Operations:
    """Return the operations of each action; those under None are public."""
    found: dict[str | None, list[str]] = {}
    for operation in list_operations():
        found.setdefault(operation.access["action"], []).append(str(operation))
    return found


def _inside(rules: Mapping[Any, Rule], operations: Operations) -> Iterator[tuple[str, ...]]:
    for action, rule in rules.items():
        may = ("yes" if role in (rule.roles or ()) else "–" for role in _ROLES)
        yield (*_what(action, operations), *may, _yes(rule.mfa), f"`{rule.key_scope}`" if rule.key_scope else "–")


def _outside(rules: Mapping[Any, Rule], operations: Operations) -> Iterator[tuple[str, ...]]:
    for action, rule in rules.items():
        who = "administrators of the platform" if rule.is_platform else "every verified person"
        yield (*_what(action, operations), who, _yes(rule.mfa), "every key" if rule.any_key else "–")


def _public() -> Iterator[tuple[str, ...]]:
    for operation in list_operations():
        if operation.access["action"] is None:
            yield f"`{operation}`", operation.access["note"] or "–"


def _what(action: str, operations: Operations) -> tuple[str, str]:
    return f"`{action}`", "<br>".join(f"`{operation}`" for operation in operations.get(action, ()))


def _yes(holds: bool) -> str:
    return "yes" if holds else "–"


def _notes(rules: Mapping[Any, Rule]) -> str:
    noted = [f"- `{action}`: {rule.note}.\n" for action, rule in rules.items() if rule.note]
    return "".join(["\nBesides, judged by the command itself:\n\n", *noted]) if noted else ""


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n" + "".join(f"| {' | '.join(line)} |\n" for line in lines)


def renew() -> None:
    """Write the page as the code has it now."""
    PAGE.write_text(printed(), "utf-8")


if __name__ == "__main__":
    renew()
