"""Hosts, e-mail addresses and web addresses, as people write them into settings."""

import re
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

_HOST_CHARS_MAX: Final = 253  # RFC 1035, section 2.3.4, as text.
_EMAIL_CHARS_MAX: Final = 254  # RFC 5321, section 4.5.3.1.3, less the angle brackets.
_LOCAL_CHARS_MAX: Final = 64  # RFC 5321, section 4.5.3.1.1.
# An underscore stands in the names that container networks give.
_LABEL: Final = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?", re.ASCII)
_ATOMS: Final = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*", re.ASCII)
_URL_TEXT: Final = re.compile(r"[\x21-\x7e]+", re.ASCII)


def check_host(text: str) -> str:
    """A host name or an IP address without brackets.

    Raises: ValueError.
    """
    if not _is_address(text) and not (
        len(text) <= _HOST_CHARS_MAX and all(_LABEL.fullmatch(label) for label in text.split("."))
    ):
        raise ValueError("must be a host name or an IP address")
    return text


def check_email(text: str) -> str:
    """An address that a mail may come from (RFC 5321, its dot-string form, in ASCII).

    Raises: ValueError.
    """
    local, _, domain = text.rpartition("@")
    is_local = len(local) <= _LOCAL_CHARS_MAX and _ATOMS.fullmatch(local)
    is_domain = all(_LABEL.fullmatch(label) for label in domain.split("."))
    if len(text) > _EMAIL_CHARS_MAX or not is_local or not is_domain:
        raise ValueError("must be an e-mail address")
    return text


def check_https_url(text: str) -> str:
    """An https address without credentials, query and fragment; without a slash at its end.

    Raises: ValueError, whose message repeats nothing of `text`.
    """
    try:
        parts = urlsplit(text if _URL_TEXT.fullmatch(text) else "")
        has_port = parts.port != 0
    except ValueError:
        raise ValueError("must be an https URL") from None
    if parts.scheme != "https" or not parts.hostname or not has_port:
        raise ValueError("must be an https URL")
    # Even an empty one: what is put together from this address later would end up behind it.
    if "@" in parts.netloc or "?" in text or "#" in text:
        raise ValueError("must be a URL without credentials, query or fragment")
    check_host(parts.hostname)
    return text.rstrip("/")


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return "%" not in text
