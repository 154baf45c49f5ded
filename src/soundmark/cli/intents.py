"""How a verified intent is shown to a person."""

import json
from typing import Any

from soundmark_sdk import Intent


def document(intent: Intent) -> dict[str, Any]:
    """The intent as the JSON object that was issued."""
    return {"type": intent.type, "action": intent.action, "resource": intent.resource}


def shown(intent: Intent, *, indent: int | None = None) -> str:
    """The intent as JSON for a terminal."""
    return printable(json.dumps(document(intent), ensure_ascii=False, indent=indent))


def printable(text: str) -> str:
    """`text` for a terminal: what is no printable character, but for ends of lines, stands as an escape of JSON.

    An issuer's text must not move the cursor, change colours or turn the direction of writing.
    """
    return "".join(char if char.isprintable() or char == "\n" else json.dumps(char)[1:-1] for char in text)
