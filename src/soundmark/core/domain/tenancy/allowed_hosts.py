"""The hosts to which a project's intents may lead.

An address is judged as its text, without a parser: what is accepted reads the same to every parser of URLs, because it
is its own serialisation, but for the case of its host and a written port 443. Whatever a parser would have to repair or
decode is refused.

Source: contract, section 13; WHATWG URL standard, "URL parsing" and "Host parsing".
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

HOSTS_MAX: Final = 100
HOST_CHARS_MAX: Final = 253  # RFC 1035, without the root's dot.
_WILDCARD: Final = "*."
_LINK: Final = "link"
_LABEL: Final = re.compile(r"(?!-)[a-z0-9-]{1,63}(?<!-)", re.ASCII)
_A_LABEL: Final = "xn--"
# "Ends in a number" of the host parser: such a host is an IPv4 address, or none.
_NUMBER: Final = re.compile(r"[0-9]+|0x[0-9a-f]*", re.ASCII)
_ADDRESS: Final = re.compile(r"https://([A-Za-z0-9.-]+)(?::443)?(?=[/?#]|\Z)", re.ASCII)


@dataclass(frozen=True, slots=True)
class AllowedHosts:
    """The list of a project: None allows every intent, an empty one no link. `updated_at` None: it was never set."""

    hosts: Sequence[str] | None
    updated_at: datetime | None


def parse_host(text: str) -> str:
    """Return an entry of a list in lower case.

    Raises: ValueError, which says what an entry must be.
    """
    host = text.lower() if text.isascii() else text
    name = host.removeprefix(_WILDCARD)
    if len(host) > HOST_CHARS_MAX or not _is_name(name) or (name != host and "." not in name):
        raise ValueError(
            "must be a DNS name in A-label form without port or trailing dot, or `*.` and a name of at least two labels"
        )
    return host


def leads_elsewhere(intent: Mapping[str, Any], hosts: Sequence[str] | None) -> bool:
    """Return whether an intent leads to another host than `hosts` allow: any with a `resource.url` that is a string.

    An intent of type `link` must have one. None allows everything.
    """
    if hosts is None:
        return False
    url = intent["resource"].get("url")
    if not isinstance(url, str):
        return bool(intent["type"] == _LINK)
    host = _find_host(url)
    return host is None or not any(_covers(entry, host) for entry in hosts)


def _find_host(url: str) -> str | None:
    """Return the host of an address in lower case; None if the address is not beyond doubt."""
    match = _ADDRESS.match(url)
    if match is None:
        return None
    host = match[1].lower()
    return host if len(host) <= HOST_CHARS_MAX and _is_name(host) else None


def _covers(entry: str, host: str) -> bool:
    if entry.startswith(_WILDCARD):
        return host.endswith(entry[1:])  # No name begins with a dot.
    return host == entry


def _is_name(name: str) -> bool:
    labels = name.split(".")
    return all(map(_is_label, labels)) and _NUMBER.fullmatch(labels[-1]) is None


def _is_label(label: str) -> bool:
    if _LABEL.fullmatch(label) is None:
        return False
    if not label.startswith(_A_LABEL):
        return True
    encoded = label.removeprefix(_A_LABEL).encode()
    try:
        decoded = encoded.decode("punycode")
    except UnicodeError:
        return False
    # A label of ASCII letters alone has another form, and so has one in capitals; what nobody can see is in no name.
    is_plain = decoded.isprintable() and decoded == decoded.lower() and not decoded.isascii()
    return is_plain and decoded.encode("punycode") == encoded
