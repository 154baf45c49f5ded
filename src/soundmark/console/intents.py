"""Intents and other JSON as a person reads them, and the one kind of intent that a person may follow."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from typing import Any, Final
from urllib.parse import urlsplit

import idna
from soundmark_sdk import Intent

# Without `%`, which browsers decode.
_HOST: Final = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*\.?")
_IN_BRACKETS: Final = re.compile(r"\[([0-9A-Fa-f:.]+)\](:[0-9]*)?")
_NUMBER: Final = re.compile(r"(.*\.)?([0-9]+|0x[0-9a-f]*)\.?")
_SHOWN_CHARS_MAX: Final = 100


@dataclass(frozen=True, slots=True)
class WebLink:
    """A link to a web page, with the host that it leads to in ASCII, so that look-alike letters show."""

    url: str
    host: str


@dataclass(frozen=True, slots=True)
class Headline:
    """What a Code does, in a line: `text` after `host`, which is None unless the intent is a plain link to the web."""

    host: str | None
    text: str
    title: str | None


def write_headline(intent: Intent, chars_max: int = _SHOWN_CHARS_MAX) -> Headline:
    """Return what an intent does, as people tell Codes from each other; what is longer than `chars_max` ends in "…"."""
    url, title, link = intent.resource.get("url"), intent.resource.get("title"), find_link(intent)
    if link is not None:
        text = link.url.removeprefix(f"https://{urlsplit(link.url).netloc}").removesuffix("/")
    else:
        text = url if isinstance(url, str) and url else f"{intent.type}, {intent.action}"
    shown_title = _shorten(title, chars_max) if isinstance(title, str) and title.strip() else None
    return Headline(None if link is None else link.host, _shorten(text, chars_max), shown_title)


def complete_prefix(typed: str) -> str:
    """Return what an address begins with, where people leave out `https://` as they do when they issue a Code."""
    is_scheme = any(f"{scheme}://".startswith(typed.lower()) for scheme in ("https", "http"))
    return typed if "://" in typed or is_scheme else f"https://{typed}"


def write_json(value: Mapping[str, Any]) -> str:
    """Return JSON with one member a line; invisible characters and those that change direction are escaped."""
    return "".join(
        each if each.isprintable() or each == "\n" else _escape(each)
        for each in json.dumps(value, ensure_ascii=False, indent=2)
    )


def find_link(intent: Intent) -> WebLink | None:
    """Return the web page that an intent names, or None unless its URL is plainly one (https, without a user name)."""
    url = intent.resource.get("url")
    if intent.type != "link" or not isinstance(url, str) or not url.isprintable() or "\\" in url or " " in url:
        return None
    try:
        parts = urlsplit(url)
        port, host = parts.port, _read_host(parts.netloc)
    except ValueError:
        return None
    if parts.scheme != "https" or host is None or "@" in parts.netloc or not url.startswith("https://"):
        return None
    return WebLink(url, host if port is None else f"{host}:{port}")


def _read_host(authority: str) -> str | None:
    """Return the host as browsers write it, in ASCII; None without one, or for one that is not plainly a host.

    Raises: ValueError, also for a host that is not plainly one.
    Source: URL Standard (WHATWG), section 3.5.
    """
    if (address := _IN_BRACKETS.fullmatch(authority)) is not None:
        return f"[{IPv6Address(address[1]).compressed}]"
    # As it is: lower() does not do to every letter what browsers do.
    host = authority.partition(":")[0]
    host = host.lower() if host.isascii() else idna.encode(host, uts46=True, transitional=False).decode("ascii")
    if _NUMBER.fullmatch(host):
        return str(IPv4Address(host))  # Browsers read `0x7f.1` as an address, too.
    return host if _HOST.fullmatch(host) else None


def _shorten(text: str, chars_max: int) -> str:
    """Return a line of text, in which invisible characters and those that change direction are escaped."""
    shown = text if len(text) <= chars_max else text[: chars_max - 1] + "…"
    return "".join(each if each.isprintable() else _escape(each) for each in shown)


def _escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
