"""How a verified intent is shown to a person."""

import json
from typing import Any

from soundmark_sdk import Intent


def document(intent: Intent) -> dict[str, Any]:
    """The intent as the JSON object that was issued."""
    return {"type": intent.type, "action": intent.action, "resource": intent.resource}


def shown(intent: Intent, *, indent: int | None = None) -> str:
    """The intent as JSON for a terminal.

    What is no printable character stands as an escape: an issuer's text must not move the cursor, change colours or
    turn the direction of writing.
    """
    text = json.dumps(document(intent), ensure_ascii=False, indent=indent)
    return "".join(char if char.isprintable() or char == "\n" else json.dumps(char)[1:-1] for char in text)
