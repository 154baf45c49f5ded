"""The types of single settings, each with its check."""

import importlib
import re
import ssl
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import Annotated, Final

from pydantic import AfterValidator, BeforeValidator, Field

from soundmark.kit.crypto.sealing import parse_master_key
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.text.credentials import read_credential
from soundmark.kit.text.validation import check_mail_name, check_url, has_valid_port, require_allowed_host, split_url

_CREDENTIAL_CHARS_MIN: Final = 16
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_OPERATOR_TOKEN_CHARS_MIN: Final = len("xop_") + 43  # 32 bytes in base64url.
_BEARER: Final = re.compile(r"[\x21-\x7e]{1,8192}")
# libpq refuses these, and repeats the part of the URL that holds them, which may be the password.
_UNREADABLE: Final = re.compile(r"\s|%(?!(?!00)[0-9A-Fa-f]{2})")


@dataclass(frozen=True, slots=True)
class Allowed:
    """The allowed values of a type in words, for docs/settings.md, if its bounds or choices do not show them."""

    text: str


def servers_of(netloc: str) -> list[str]:
    """Return the servers of a database URL: libpq takes several, separated by commas."""
    return [server.removesuffix(":5432").lower() for server in netloc.rpartition("@")[2].split(",")]


def _http_url(text: str) -> str:
    return check_url(text, "http").rstrip("/")


def _secure_url(text: str) -> str:
    return check_url(text, "secure").rstrip("/")


def _origin(text: str) -> str:
    parts = split_url(_secure_url(text))
    # The console's cookies and the addresses of its pages begin at the root.
    if parts.path:
        raise ValueError("must be a URL without a path")
    # As browsers write it in the header `Origin`, which every form is compared with.
    host = parts.hostname or ""
    origin = f"{parts.scheme}://" + (f"[{ip_address(host).compressed}]" if ":" in host else host)
    return origin if parts.port in {None, _DEFAULT_PORTS[parts.scheme]} else f"{origin}:{parts.port}"


def _database_url(text: str) -> Secret:
    parts = split_url(text)
    is_complete = parts.scheme in {"postgresql", "postgres"} and parts.path.strip("/")
    is_readable = _UNREADABLE.search(text) is None and parts.netloc.count("@") <= 1
    if not is_complete or not is_readable or not all(map(has_valid_port, servers_of(parts.netloc))):
        raise ValueError("must be a postgresql:// URL that names a database, with special characters percent-encoded")
    for server in servers_of(parts.netloc):
        require_allowed_host(split_url(f"//{server}").hostname or "")
    _require_readable_parameters(text)
    return Secret(text)


def _require_readable_parameters(url: str) -> None:
    # Audio and the console have no database, and load no driver.
    driver = importlib.import_module("psycopg")
    try:
        float(driver.conninfo.conninfo_to_dict(url).get("connect_timeout") or 0)
    except (driver.ProgrammingError, ValueError):
        raise ValueError("must have only parameters that libpq knows; connect_timeout must be a number") from None


def _rate_limit_url(text: str) -> Secret:
    parts = split_url(text)
    if parts.scheme not in {"redis", "rediss"} or not has_valid_port(parts.netloc):
        raise ValueError("must be a redis:// or rediss:// URL, with special characters percent-encoded")
    require_allowed_host(parts.hostname or "")
    try:
        # It makes a connection without opening it. The client takes 65 ms to import, and few deployments use it.
        importlib.import_module("redis.asyncio").ConnectionPool.from_url(text).make_connection()
    except (TypeError, ValueError):
        raise ValueError("must have only parameters that the client of Redis knows") from None
    return Secret(text)


def _credentials(text: str) -> tuple[Secret, ...]:
    parts = [part.strip() for part in text.split(",")]
    if len(parts) > 2 or any(len(part) < _CREDENTIAL_CHARS_MIN for part in parts):  # noqa: PLR2004 - a pair
        raise ValueError("must be one credential of 16 or more characters, or two separated by a comma")
    if not all(map(_BEARER.fullmatch, parts)):
        raise ValueError("must be printable ASCII characters without spaces")
    return tuple(Secret(part) for part in parts)


def _networks(text: str) -> tuple[IPv4Network | IPv6Network, ...]:
    try:
        return tuple(ip_network(part.strip()) for part in text.split(",") if part.strip())
    except ValueError:
        raise ValueError("must be a comma-separated list of networks in CIDR notation") from None


def _operator_token(text: str) -> Secret:
    if not text.startswith("xop_") or len(text) < _OPERATOR_TOKEN_CHARS_MIN:
        raise ValueError("must be xop_ followed by 43 or more characters")
    if _BEARER.fullmatch(text) is None:
        raise ValueError("must be printable ASCII characters without spaces")
    return Secret(text)


def _api_key(text: str) -> Secret:
    # A person's access token works as well, so any bearer credential is accepted.
    return Secret(read_credential(text))


def _oidc_client_secret(text: str) -> Secret:
    if _BEARER.fullmatch(text) is None:
        raise ValueError("must be printable ASCII characters without spaces")
    return Secret(text)


def _oidc_resource(text: str) -> str:
    # RFC 8707, section 2: an absolute URI without a fragment, such as a URL or a URN.
    parts = split_url(text)
    if not parts.scheme or not (parts.netloc or parts.path) or "#" in text or _BEARER.fullmatch(text) is None:
        raise ValueError("must be an absolute URI without a fragment")
    return text


def _oidc_issuer(text: str) -> str:
    # Kept exactly as it is, including a slash at its end, because tokens name it like that.
    return check_url(text, "secure")


def _master_key(text: str) -> Secret:
    parse_master_key(text)
    return Secret(text.strip())


def _authorities_file(file: Path) -> Path:
    _absolute_path(file)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.load_verify_locations(cafile=file)
    except ssl.SSLError:
        pass  # Not PEM, or without a certificate.
    except OSError as error:
        raise ValueError(f"cannot be read: {error.strerror}") from None
    if context.cert_store_stats()["x509"] == 0:
        raise ValueError("must be a PEM file with at least one certificate")
    return file


def _schema_name(name: str) -> str:
    if name.startswith("pg_"):
        raise ValueError("must not begin with pg_, as PostgreSQL's own schemas do")
    return name


def _absolute_path(path: Path) -> Path:
    # The processes of a deployment may have different working directories.
    if not path.is_absolute() or "\0" in str(path):
        raise ValueError("must be an absolute path")
    return path


HttpUrl = Annotated[str, AfterValidator(_http_url), Allowed("`http://…` or `https://…`")]
SecureUrl = Annotated[str, AfterValidator(_secure_url), Allowed("`https://…`, or `http://…` on a loopback address")]
Origin = Annotated[
    str, AfterValidator(_origin), Allowed("`https://…`, or `http://…` on a loopback address, without a path")
]
DatabaseUrl = Annotated[Secret, BeforeValidator(_database_url), Allowed("`postgresql://…` with the name of a database")]
RateLimitUrl = Annotated[Secret, BeforeValidator(_rate_limit_url), Allowed("`redis://…` or `rediss://…`")]
Credentials = Annotated[
    tuple[Secret, ...],
    BeforeValidator(_credentials),
    Allowed("16 or more characters, or two such values separated by a comma"),
]
MailName = Annotated[str, AfterValidator(check_mail_name), Allowed("a domain name or an IP address")]
Port = Annotated[int, Field(ge=1, le=65535)]
Networks = Annotated[
    tuple[IPv4Network | IPv6Network, ...],
    BeforeValidator(_networks),
    Allowed("networks in CIDR notation, separated by commas"),
]
OperatorToken = Annotated[Secret, BeforeValidator(_operator_token), Allowed("`xop_` followed by 43 or more characters")]
ApiKey = Annotated[Secret, BeforeValidator(_api_key), Allowed("an API key or an access token")]
ListenHost = Annotated[str, Field(min_length=1, max_length=255), Allowed("an address of the machine, or `0.0.0.0`")]
OidcIssuer = Annotated[str, AfterValidator(_oidc_issuer), Allowed("`https://…`, or `http://…` on a loopback address")]
OidcClientId = Annotated[str, Field(max_length=255), Allowed("1 to 255 characters; set together with the issuer")]
OidcClientSecret = Annotated[
    Secret, BeforeValidator(_oidc_client_secret), Allowed("printable ASCII characters without spaces")
]
OidcResource = Annotated[str, AfterValidator(_oidc_resource), Allowed("an absolute URI without a fragment")]
MasterKey = Annotated[Secret, BeforeValidator(_master_key), Allowed("32 bytes in base64url: 43 characters")]
AuthoritiesFile = Annotated[
    Path, AfterValidator(_authorities_file), Allowed("the absolute path of a PEM file with certificates")
]
SchemaName = Annotated[
    str,
    Field(pattern="^[a-z_][a-z0-9_]{0,57}$"),
    AfterValidator(_schema_name),
    Allowed("1 to 58 characters `a-z`, `0-9`, `_`, not beginning with a digit or `pg_`"),
]
EvidencePath = Annotated[Path, AfterValidator(_absolute_path), Allowed("the absolute path of a file")]
FolderPath = Annotated[Path, AfterValidator(_absolute_path), Allowed("the absolute path of a folder")]
IntegrationId = Annotated[str, Field(pattern="^int_[A-Za-z0-9_-]{8,}$"), Allowed("the id of an integration, `int_…`")]
Currency = Annotated[str, Field(pattern="^[A-Z]{3}$"), Allowed("a currency code of ISO 4217, such as `TND`")]
