"""How a verified intent is format_intent to a person."""

import json
from typing import Any

from soundmark_sdk import Intent


def document(intent: Intent) -> dict[str, Any]:
    """Return the intent as the JSON object that was issued."""
    return {"type": intent.type, "action": intent.action, "resource": intent.resource}


def format_intent(intent: Intent, *, indent: int | None = None) -> str:
    """Return the intent as JSON for a terminal."""
    return printable(json.dumps(document(intent), ensure_ascii=False, indent=indent))


def printable(text: str) -> str:
    """Return `text` for a terminal, with unprintable characters other than line ends as JSON escapes.

    An issuer's text must not move the cursor, change colours or reverse the direction of writing.
    """
    return "".join(char if char.isprintable() or char == "\n" else json.dumps(char)[1:-1] for char in text)
