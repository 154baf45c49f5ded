"""URLs on the public internet that somebody else chose, and to which we send requests."""

import re
from dataclasses import dataclass
from typing import Final

from soundmark.kit.http.outbound.public_address import find_address, is_public
from soundmark.kit.text.validation import is_loopback_host

URL_CHARS_MAX: Final = 2048  # Contract, section 9.
_HOST_CHARS_MAX: Final = 253  # RFC 1035, section 2.3.4, as text.
_PORTS_MAX: Final = 65535
_DEFAULT_PORTS: Final = {"https": 443, "http": 80}
# RFC 3986, without user information and without a fragment. A library would accept more, such as line breaks.
_URL: Final = re.compile(
    r"(?P<scheme>https?)://(?P<host>\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(?::(?P<port>[0-9]{1,5}))?"
    r"(?P<path>/[a-z0-9._~!$&'()*+,;=:@/%-]*)?(?P<query>\?[a-z0-9._~!$&'()*+,;=:@/?%-]*)?",
    re.ASCII | re.IGNORECASE,
)
_LABEL: Final = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?", re.ASCII)
# What a resolver takes for an IPv4 address: `127.1`, `2130706433`, `0x7f.1`, `0177.0.0.1`. Source: WHATWG URL, 3.5.
_NUMBER: Final = re.compile(r"[0-9]+|0x[0-9a-f]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class PublicUrl:
    """The parts of a URL that was judged. `host` is in lower case and without brackets; `target` has the query."""

    scheme: str
    host: str
    port: int
    target: str

    @property
    def authority(self) -> str:
        """The value of the header `Host`."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"


def judge_url(url: str, *, allow_loopback: bool) -> None:
    """Refuse a URL to which we must not send anything, whatever its host's name resolves to.

    Raises: ValueError, whose text says what is wrong and repeats nothing of the URL.
    """
    parse_public_url(url, allow_loopback=allow_loopback)


def parse_public_url(url: str, *, allow_loopback: bool) -> PublicUrl:
    """Return the parts of a URL with https and a public host, or on this machine if `allow_loopback`.

    Which addresses a name has is judged when it is connected to (`kit.http.outbound.guarded_client`).

    Raises: ValueError, whose text says what is wrong and repeats nothing of the URL.
    """
    if len(url) > URL_CHARS_MAX:
        raise ValueError(f"must have at most {URL_CHARS_MAX} characters")
    match = _URL.fullmatch(url)
    if match is None:
        raise ValueError(
            "must be an https URL in ASCII, without credentials or a fragment, and with its host name in A-label form"
        )
    scheme, host = match["scheme"].lower(), match["host"].lower()
    port = int(match["port"] or _DEFAULT_PORTS[scheme])
    if not 1 <= port <= _PORTS_MAX:
        raise ValueError(f"must have a port from 1 to {_PORTS_MAX}")
    host = _judge_host(host, allow_loopback=allow_loopback)
    if scheme != "https" and not is_loopback_host(host):
        raise ValueError("must be an https URL")
    return PublicUrl(scheme, host, port, (match["path"] or "/") + (match["query"] or ""))


def _judge_host(host: str, *, allow_loopback: bool) -> str:
    """Return `host` without brackets.

    Raises: ValueError.
    """
    bare = host.removeprefix("[").removesuffix("]")
    address = find_address(bare)
    if (host != bare) != (address is not None and address.version == 6):  # noqa: PLR2004 - the version of IP
        raise ValueError("must have a host name or an IP address")
    if is_loopback_host(bare) or bare.endswith(".localhost"):
        if allow_loopback and not bare.endswith(".localhost"):
            return bare
        raise ValueError("must not point to this machine")
    if address is not None:
        if not is_public(address):
            raise ValueError("must not have an IP address that is private, local or reserved")
        return bare
    labels = bare.split(".")
    if len(bare) > _HOST_CHARS_MAX or not all(_LABEL.fullmatch(label) for label in labels):
        raise ValueError("must have a host name or an IP address")
    if _NUMBER.fullmatch(labels[-1]):
        raise ValueError("must have its IP address as four decimal numbers")
    return bare
