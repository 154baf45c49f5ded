"""Reports of Codes that harm people."""

import json
from typing import Final, Literal, TypeAlias

from soundmark_sdk.failures import ReceiverFailure
from soundmark_sdk.members import BROADCAST_TOKEN

AbuseCategory: TypeAlias = Literal["spam", "malware", "impersonation", "illegal", "other"]

_TEXT_CHARS_MAX: Final = 2000
_CONTACT_CHARS_MAX: Final = 254


def write_report(token: str, category: AbuseCategory, text: str, contact: str | None) -> bytes:
    """Return the body of a report.

    Raises: ReceiverFailure for a text that cannot be a token; ValueError for a text or a contact of a wrong length.
    """
    if BROADCAST_TOKEN.fullmatch(token) is None:
        raise ReceiverFailure("code_unavailable", "That is not a broadcast token.")
    if len(text) > _TEXT_CHARS_MAX:
        raise ValueError(f"The text must have {_TEXT_CHARS_MAX} characters at most.")
    if contact is not None and not 1 <= len(contact) <= _CONTACT_CHARS_MAX:
        raise ValueError(f"The contact must have 1 to {_CONTACT_CHARS_MAX} characters.")
    document = {"token": token, "category": category, "text": text, "contact": contact}
    return json.dumps(document).encode()
