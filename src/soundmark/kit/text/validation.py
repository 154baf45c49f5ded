"""Checks of hosts, e-mail addresses and URLs in settings and in documents of other services.

No error message repeats the refused text, because it may contain a password.
"""

import re
from collections.abc import Callable, Mapping
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final, Literal
from urllib.parse import SplitResult, urlsplit

from soundmark.kit.text.refused_hosts import is_refused_host

if TYPE_CHECKING:
    from email_validator import ValidatedEmail

# "https": https only. "secure": https, or http on a loopback address, which no network can tamper with.
# "http": both, for a service in the operator's own network.
UrlKind = Literal["https", "secure", "http"]

_HOST_CHARS_MAX: Final = 253  # RFC 1035, section 2.3.4, as text.
# Container networks give names with an underscore.
_LABEL: Final = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?", re.ASCII)
_HOST_HEADER: Final = re.compile(r"(?:([A-Za-z0-9_.-]+)|\[([0-9A-Fa-f:.]+)\])(?::([1-9][0-9]{0,4}))?", re.ASCII)
_URL_TEXT: Final = re.compile(r"[\x21-\x7e]+", re.ASCII)


def check_host(text: str) -> str:
    """Return `text` if it is a host name, or an IP address without brackets, that we may connect to.

    Raises: ValueError.
    """
    if not _is_ip_address(text) and not _is_host_name(text):
        raise ValueError("must be a host name or an IP address")
    require_allowed_host(text)
    return text


def require_allowed_host(host: str) -> None:
    """Refuse a host that no setting may lead to, as `kit.text.refused_hosts` says.

    Raises: ValueError.
    """
    if is_refused_host(host):
        raise ValueError("must not point to a link-local address or to a cloud metadata server")


def check_mail_name(text: str) -> str:
    """Return the name by which we greet mail servers: a domain name, or an IP address as an address literal.

    Raises: ValueError.
    Source: RFC 5321, sections 4.1.1.1 and 4.1.3.
    """
    bare = text.removeprefix("[").removesuffix("]")
    bare = bare.removeprefix("IPv6:")
    if _is_ip_address(bare) and text in {bare, write_address_literal(bare)}:
        return write_address_literal(bare)
    if "_" in text or not _is_host_name(text) or text.rpartition(".")[2].isdecimal():
        raise ValueError("must be a domain name or an IP address")
    return text


def write_address_literal(address: str) -> str:
    """Return an IP address as it stands in a greeting to a mail server.

    Source: RFC 5321, section 4.1.3.
    """
    return f"[IPv6:{address}]" if ":" in address else f"[{address}]"


def is_loopback_host(host: str) -> bool:
    """Return whether `host`, a name or an IP address, is this machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def split_host_header(text: str) -> tuple[str, int | None] | None:
    """Return the host, without brackets, and the port of a `Host` header; None for anything that is no such header.

    It has no user information, no path and no port with zeros in front, which a library for URLs would read past.

    Source: RFC 9110, section 7.2.
    """
    match = _HOST_HEADER.fullmatch(text)
    if match is None:
        return None
    name, address, port = match.groups()
    return name or address, None if port is None else int(port)


def parse_email(text: str) -> "ValidatedEmail":
    """Parse an e-mail address in any language, without asking the DNS whether its domain exists.

    Raises: ValueError.
    Source: RFC 5321, RFC 6531.
    """
    # Its tables cost a process 22 ms, and every process has settings, of which few hold an address.
    import email_validator  # noqa: PLC0415 - see above

    # The library refuses domains that no public mail server knows. On a private network, people may have mail at
    # `….local` or `….test`, and an identity provider that verified it.
    email_validator.SPECIAL_USE_DOMAIN_NAMES.clear()
    try:
        return email_validator.validate_email(text, check_deliverability=False, globally_deliverable=False, strict=True)
    except email_validator.EmailNotValidError:
        raise ValueError("must be an e-mail address") from None


def check_ascii_email(text: str) -> str:
    """Return `text` if it is an e-mail address that every mail server accepts.

    Raises: ValueError.
    """
    parse_email(text)
    if not text.isascii():
        raise ValueError("must be an e-mail address in ASCII")
    return text


def check_url(text: str, kind: UrlKind) -> str:
    """Return `text` if it is a URL of this kind, without credentials, query or fragment, that we may connect to.

    Raises: ValueError.
    """
    expected, is_kind = _URL_KINDS[kind]
    parts = _split_with_host(text)
    if parts is None or not is_kind(parts):
        raise ValueError(f"must be {expected}")
    # Even an empty query: a path that is appended later would end up behind it.
    if "@" in parts.netloc or "?" in text or "#" in text:
        raise ValueError("must be a URL without credentials, query or fragment")
    require_allowed_host(parts.hostname or "")
    return text


def is_secure_url(text: str) -> bool:
    """Return whether `text` is a "secure" URL without credentials or fragment that we may connect to.

    It may have a query.
    """
    parts = _split_with_host(text)
    if parts is None or not _is_secure(parts) or is_refused_host(parts.hostname or ""):
        return False
    return "@" not in parts.netloc and "#" not in text


def split_url(text: str) -> SplitResult:
    """Split a URL into its parts; all are empty if the library refuses it, as its error message repeats the text."""
    try:
        return urlsplit(text)
    except ValueError:
        return urlsplit("")


def has_valid_port(netloc: str) -> bool:
    """Return whether `netloc` names no port, or one that exists."""
    try:
        return urlsplit(f"//{netloc}").port != 0
    except ValueError:
        return False


def _split_with_host(text: str) -> SplitResult | None:
    """Return the parts of a URL with a host, in printable ASCII; None for everything else."""
    parts = split_url(text if _URL_TEXT.fullmatch(text) else "")
    if not parts.hostname or not has_valid_port(parts.netloc):
        return None
    # An absolute domain name ends with a dot.
    host = parts.hostname.removesuffix(".")
    return parts if _is_ip_address(host) or _is_host_name(host) else None


def _is_host_name(text: str) -> bool:
    return len(text) <= _HOST_CHARS_MAX and all(_LABEL.fullmatch(label) for label in text.split("."))


def _is_ip_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return "%" not in text  # An IPv6 address with a zone is meaningful on one machine only.


def _is_secure(parts: SplitResult) -> bool:
    return parts.scheme == "https" or (parts.scheme == "http" and is_loopback_host(parts.hostname or ""))


_URL_KINDS: Final[Mapping[UrlKind, tuple[str, Callable[[SplitResult], bool]]]] = {
    "https": ("an https URL", lambda parts: parts.scheme == "https"),
    "secure": ("an https URL, or an http URL on a loopback address", _is_secure),
    "http": ("an http or https URL", lambda parts: parts.scheme in {"http", "https"}),
}
