"""Reading an intent from the command line, and showing one at a terminal."""

import json
import sys
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urlsplit

import typer
from soundmark_sdk import Intent

from soundmark.cli import Refused
from soundmark.kit.http.requests.strict_json import MalformedJson, parse_json


def read_intent(text: str) -> Intent:
    """Read the intent that an option gives, as JSON or as the place of a file.

    Raises: typer.BadParameter; Refused for a file that cannot be read.
    """
    given = _read_file(text[1:]) if text.startswith("@") else text.encode(errors="surrogateescape")
    try:
        value = parse_json(given)
    except MalformedJson:
        raise typer.BadParameter("--intent is not JSON") from None
    match value:
        case {"type": str(kind), "action": str(action), "resource": dict(resource), **rest} if not rest:
            return Intent(kind, action, resource)
        case _:
            raise typer.BadParameter("--intent must have exactly type, action and resource; resource is an object")


def make_link(url: str | None) -> Intent:
    """Return the intent that opens an address, which is issued as it is given.

    Raises: typer.BadParameter for a part of an address, since nothing is completed silently.
    """
    try:
        parts = urlsplit(url or "")
        is_whole = parts.scheme in {"http", "https"} and bool(parts.hostname)
    except ValueError:
        is_whole = False
    if not is_whole:
        raise typer.BadParameter("--url must be a whole address, such as https://example.org/tonight")
    return Intent("link", "open", {"url": url})


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


def open_standard_input() -> BinaryIO:
    """Return standard input.

    Raises: Refused if it is closed.
    """
    if sys.stdin is None:
        raise Refused("standard input is closed")
    return sys.stdin.buffer


def _read_file(name: str) -> bytes:
    if name == "-":
        return open_standard_input().read()
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise Refused(f"{name} cannot be read: {error.strerror}") from None
