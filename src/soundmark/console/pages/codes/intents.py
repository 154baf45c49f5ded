"""Intents and other JSON as a person reads them, and the one kind of intent that a person may follow."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from soundmark_sdk import Intent


@dataclass(frozen=True, slots=True)
class WebLink:
    """A link to a web page, with the host that it leads to in ASCII, so that look-alike letters show."""

    url: str
    host: str


def write_json(value: Mapping[str, Any]) -> str:
    """Return JSON with one member a line; invisible characters and those that change direction are escaped."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    return "".join(each if each.isprintable() or each == "\n" else _escape(each) for each in text)


def find_link(intent: Intent) -> WebLink | None:
    """Return the web page that an intent names, or None unless its URL is plainly one (https, without a user name)."""
    url = intent.resource.get("url")
    if intent.type != "link" or not isinstance(url, str) or not url.isprintable() or "\\" in url or " " in url:
        return None
    try:
        parts = urlsplit(url)
        has_port = parts.port is not None
        host = (parts.hostname or "").encode("idna").decode("ascii")
    except ValueError:
        return None
    if parts.scheme != "https" or not host or "@" in parts.netloc or not url.startswith("https://"):
        return None
    return WebLink(url, f"{host}:{parts.port}" if has_port else host)


def _escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
