"""Every setting of every component. Names and defaults: docs/settings.md; only `app` modules and the CLI read them."""

import re
from collections.abc import Mapping
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Annotated, Final, Literal, TypeVar
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from soundmark.kit import settings as kit
from soundmark.kit.sealing import parse_master_key
from soundmark.kit.secret import Secret
from soundmark.kit.validation import check_ascii_email, check_host, check_url, has_valid_port, split_url

Component = Literal["core", "audience", "audio"]

_CREDENTIAL_CHARS_MIN: Final = 16
_LOCAL_CORE: Final = "http://127.0.0.1:8080"  # Where `soundmark up` and `serve core` serve unless told otherwise.
# What the platform settings take under the same names.
_FROM_NAME_CHARS_MAX: Final = 120
_SMTP_SECRET_CHARS_MAX: Final = 4096
_BEARER: Final = re.compile(r"[\x21-\x7e]{1,8192}")
# What libpq refuses, repeating the part of the URL in which it stands: a password, maybe.
_UNREADABLE: Final = re.compile(r"\s|%(?!(?!00)[0-9A-Fa-f]{2})")


def _http_url(text: str) -> str:
    return check_url(text, "http").rstrip("/")


def _database_url(text: str) -> Secret:
    parts = split_url(text)
    is_complete = parts.scheme in {"postgresql", "postgres"} and parts.path.strip("/")
    is_readable = _UNREADABLE.search(text) is None and parts.netloc.count("@") <= 1
    # libpq takes several servers with commas between.
    if not is_complete or not is_readable or not all(map(has_valid_port, _servers(parts.netloc))):
        raise ValueError(
            "must be a postgresql:// URL that names a database, with what is special in it percent-encoded"
        )
    return Secret(text)


def _servers(netloc: str) -> list[str]:
    return [server.removesuffix(":5432").lower() for server in netloc.rpartition("@")[2].split(",")]


def _credentials(text: str) -> tuple[Secret, ...]:
    parts = [part.strip() for part in text.split(",")]
    if len(parts) > 2 or any(len(part) < _CREDENTIAL_CHARS_MIN for part in parts):  # noqa: PLR2004 - a pair
        raise ValueError("must be one credential of 16 or more characters, or two with a comma between")
    return tuple(Secret(part) for part in parts)


def _networks(text: str) -> tuple[IPv4Network | IPv6Network, ...]:
    try:
        return tuple(ip_network(part.strip()) for part in text.split(",") if part.strip())
    except ValueError:
        raise ValueError("must be a comma-separated list of networks in CIDR notation") from None


def _rate_limit_url(text: str) -> Secret:
    parts = split_url(text)
    if parts.scheme not in {"redis", "rediss"} or not has_valid_port(parts.netloc):
        raise ValueError("must be a redis:// or rediss:// URL, with what is special in it percent-encoded")
    return Secret(text)


def _operator_token(text: str) -> Secret:
    if not text.startswith("xop_") or len(text) < len("xop_") + 43:
        raise ValueError("must begin with xop_ and carry 43 or more characters")
    return Secret(text)


def _api_key(text: str) -> Secret:
    # A person's access token serves as well, so the shape is that of any bearer credential.
    if _BEARER.fullmatch(text.strip()) is None:
        raise ValueError("must be a server key or an access token: printable ASCII characters without spaces")
    return Secret(text.strip())


def _oidc_issuer(text: str) -> str:
    # Kept to the letter, with a slash at its end: tokens name it like that.
    return check_url(text, "secure")


def _master_key(text: str) -> Secret:
    parse_master_key(text)
    return Secret(text.strip())


def _from_name(text: str) -> str:
    if not text.strip() or len(text.strip()) > _FROM_NAME_CHARS_MAX or not text.isprintable():
        raise ValueError(f"must be a text of 1 to {_FROM_NAME_CHARS_MAX} printable characters")
    return text.strip()


def _smtp_secret(text: str) -> Secret:
    if len(text) > _SMTP_SECRET_CHARS_MAX:
        raise ValueError(f"must have at most {_SMTP_SECRET_CHARS_MAX} characters")
    return Secret(text)


HttpUrl = Annotated[str, AfterValidator(_http_url)]
DatabaseUrl = Annotated[Secret, BeforeValidator(_database_url)]
Credentials = Annotated[tuple[Secret, ...], BeforeValidator(_credentials)]
Port = Annotated[int, Field(ge=1, le=65535)]
Networks = Annotated[tuple[IPv4Network | IPv6Network, ...], BeforeValidator(_networks)]


class ProcessSettings(kit.Settings):
    """What every process takes."""

    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_format: Literal["text", "json"] | None = None
    metrics_port: Port | None = None


class ServedSettings(ProcessSettings):
    """Settings of every process that serves: how many connections it holds, and whose `X-Forwarded-For` it believes."""

    connections_max: Annotated[int, Field(ge=16, le=1_000_000)] = 4096
    connections_per_address: Annotated[int, Field(ge=1, le=1_000_000)] = 512
    trusted_proxies: Networks = ()


class SmtpSettings(kit.Settings):
    """What every process takes that reads the platform settings: what holds where the database says nothing."""

    smtp_host: Annotated[str, AfterValidator(check_host)] | None = None
    smtp_port: Port | None = None
    smtp_secure: bool | None = None
    smtp_from_email: Annotated[str, AfterValidator(check_ascii_email)] | None = None
    smtp_from_name: Annotated[str, AfterValidator(_from_name)] | None = None
    smtp_username: Annotated[Secret, BeforeValidator(_smtp_secret)] | None = None
    smtp_password: Annotated[Secret, BeforeValidator(_smtp_secret)] | None = None


class PrivateSettings(kit.Settings):
    """What every process takes that calls a private component: how long it waits, and how much it reads."""

    private_timeout_s: Annotated[float, Field(ge=1, le=60)] = 5
    private_response_bytes_max: Annotated[int, Field(ge=1024, le=16 * 1024 * 1024)] = 8 * 1024 * 1024


class AudienceChannelSettings(PrivateSettings):
    """What every process takes that calls Audience."""

    audience_url: HttpUrl
    audience_credential: Credentials


class AddressSettings(kit.Settings):
    """What every process takes that limits what one client IP address may do."""

    refusal_rate_limit: Annotated[int, Field(ge=1)] = 600
    refusal_rate_window_s: Annotated[int, Field(ge=1, le=3600)] = 10
    rate_limit_url: Annotated[Secret, BeforeValidator(_rate_limit_url)] | None = None


class CoreSettings(ServedSettings, SmtpSettings, AudienceChannelSettings, AddressSettings):
    """Core: the public control plane."""

    base_url: HttpUrl
    core_database_url: DatabaseUrl
    audience_database_url: DatabaseUrl | None = None
    database_pool_size: Annotated[int, Field(ge=2, le=200)] = 10
    master_key: Annotated[Secret, BeforeValidator(_master_key)]
    audio_url: HttpUrl
    audio_credential: Credentials
    oidc_issuer: Annotated[str, AfterValidator(_oidc_issuer)] | None = None
    oidc_client_id: Annotated[str, Field(max_length=255)] | None = None
    operator_token: Annotated[Secret, BeforeValidator(_operator_token)] | None = None
    organizations_per_user: Annotated[int, Field(ge=1)] = 50
    resolve_rate_limit: Annotated[int, Field(ge=1)] = 120
    resolve_rate_window_s: Annotated[int, Field(ge=1, le=3600)] = 10

    @model_validator(mode="after")
    def _databases_differ(self) -> "CoreSettings":
        _refuse_shared_database(self.core_database_url, self.audience_database_url)
        return self

    @model_validator(mode="after")
    def _oidc_is_whole(self) -> "CoreSettings":
        if (self.oidc_issuer is None) != (self.oidc_client_id is None):
            raise ValueError("SOUNDMARK_OIDC_ISSUER and SOUNDMARK_OIDC_CLIENT_ID must both be set, or neither")
        return self


class AudienceSettings(ServedSettings, AddressSettings):
    """Audience: measurement, with a database of its own. `base_url` is where Core explains the problems of events."""

    base_url: HttpUrl = _LOCAL_CORE
    audience_database_url: DatabaseUrl
    core_database_url: DatabaseUrl | None = None
    audience_credential: Credentials
    database_pool_size: Annotated[int, Field(ge=2, le=200)] = 10
    master_key: Annotated[Secret, BeforeValidator(_master_key)]

    @model_validator(mode="after")
    def _databases_differ(self) -> "AudienceSettings":
        _refuse_shared_database(self.core_database_url, self.audience_database_url)
        return self


class AudioSettings(ServedSettings):
    """Audio: renders frames, holds nothing."""

    audio_credential: Credentials


class CoreDatabaseSettings(ProcessSettings):
    """What a command that only touches Core's database takes."""

    core_database_url: DatabaseUrl


class CoreJobsSettings(CoreDatabaseSettings, SmtpSettings, AudienceChannelSettings):
    """What `soundmark work core` takes."""

    base_url: HttpUrl
    database_pool_size: Annotated[int, Field(ge=2, le=200)] = 10
    master_key: Annotated[Secret, BeforeValidator(_master_key)]


class AudienceDatabaseSettings(ProcessSettings):
    """What a command that only touches Audience's database takes."""

    audience_database_url: DatabaseUrl


class AudienceKeysSettings(AudienceDatabaseSettings):
    """What a command takes that opens what Audience has sealed; the master key is Audience's own."""

    master_key: Annotated[Secret, BeforeValidator(_master_key)]


class KeysSettings(CoreDatabaseSettings):
    """What `soundmark keys` takes."""

    master_key: Annotated[Secret, BeforeValidator(_master_key)]


class RotationSettings(KeysSettings, AudienceChannelSettings):
    """What the commands take that put another signing key in place, which Audience has to know before."""


class LegacyImportSettings(CoreDatabaseSettings, AudienceChannelSettings):
    """What the command takes that imports aggregates into Audience."""


class ContractSettings(ProcessSettings):
    """What the commands that write the published contract take."""

    base_url: HttpUrl = _LOCAL_CORE


class ClientSettings(ProcessSettings):
    """What the commands that call Core's API take."""

    base_url: HttpUrl = _LOCAL_CORE
    api_key: Annotated[Secret, BeforeValidator(_api_key)] | None = None


class UpSettings(ProcessSettings):
    """What `soundmark up` takes itself, beside the settings of what it runs."""

    postgres_bin: Path | None = None


COMPONENTS: Final[Mapping[Component, type[ServedSettings]]] = {
    "core": CoreSettings,
    "audience": AudienceSettings,
    "audio": AudioSettings,
}

JOBS: Final[Mapping[Component, type[ProcessSettings]]] = {
    "core": CoreJobsSettings,
    "audience": AudienceDatabaseSettings,
}

_MODELS: Final[tuple[type[ProcessSettings], ...]] = (*COMPONENTS.values(), ClientSettings, UpSettings)
_KNOWN: Final = {name.upper() for model in _MODELS for name in model.model_fields}

S = TypeVar("S", bound=ProcessSettings)


def read(model: type[S], environ: Mapping[str, str]) -> S:
    """The settings of `model` from `environ`.

    Raises: kit.settings.SettingsInvalid, naming everything that is wrong.
    """
    return kit.read_settings(model, environ, known=_KNOWN)


def _refuse_shared_database(core: Secret | None, audience: Secret | None) -> None:
    if core is None or audience is None:
        return
    one, other = urlsplit(core.reveal()), urlsplit(audience.reveal())
    if set(_servers(one.netloc)) & set(_servers(other.netloc)) and (
        one.path == other.path or one.username == other.username
    ):
        raise ValueError(
            "SOUNDMARK_CORE_DATABASE_URL and SOUNDMARK_AUDIENCE_DATABASE_URL must name two databases and two roles"
        )
