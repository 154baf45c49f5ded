"""What owners are told about a suspension."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from soundmark.core.steps.owner_notices import Notice

NOT_TOLD: Final = "suspension_owners_not_told"
_SUBJECTS: Final[Mapping[str, str]] = {
    "suspended": "Your organisation was suspended",
    "restored": "Your organisation is active again",
}
_TEXTS: Final[Mapping[str, str]] = {
    "suspended": """\
The operator of Soundmark has suspended your organisation
{organization_id}

Its Codes no longer resolve, its audience is not measured, and nothing can be added to it. You can still read, export
and delete everything, revoke Codes, and write to the support desk, where you can ask for the reason:

{console_url}

You receive this e-mail because you own the organisation.
""",
    "restored": """\
The operator of Soundmark has restored your organisation
{organization_id}

Its Codes resolve again, its audience is measured, and you can issue Codes.

You receive this e-mail because you own the organisation.
""",
}


def make_notice(*, organization_id: str, change: str, at: datetime, console_url: str) -> Notice:
    """Return what an owner is told when the organisation was suspended or restored, as `change` says, at `at`."""
    text = _TEXTS[change].format(organization_id=organization_id, console_url=console_url)
    identity = f"{organization_id}.{change}"
    return Notice(_SUBJECTS[change], text, identity, at, NOT_TOLD, {"organization_id": organization_id})
