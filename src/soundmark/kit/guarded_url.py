"""Addresses whose answers cannot be changed on their way."""

from ipaddress import ip_address
from urllib.parse import urlsplit


def is_guarded_url(text: str) -> bool:
    """Whether `text` is an https address, or an http address of this machine, without credentials and fragment."""
    try:
        parts = urlsplit(text)
        is_whole = bool(parts.hostname) and parts.port != 0 and "@" not in parts.netloc and "#" not in text
    except ValueError:
        return False
    if not is_whole or not text.isascii() or not text.isprintable() or " " in text:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and _is_this_machine(parts.hostname or ""))


def _is_this_machine(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
