"""Settings that several components share."""

from typing import Annotated, Final, Literal
from urllib.parse import urlsplit

from pydantic import Field, ValidationInfo, field_validator

from soundmark.kit.crypto.secret import Secret
from soundmark.kit.settings import Settings, disagreement
from soundmark.settings.fields import (
    AuthoritiesFile,
    ListenHost,
    Networks,
    OidcClientId,
    OidcIssuer,
    OperatorToken,
    Port,
    RateLimitUrl,
    servers_of,
)

PUBLIC_SCHEMA: Final = "public"  # Where PostgreSQL makes tables unless a role says otherwise.
LOCAL_CORE: Final = "http://127.0.0.1:8080"  # Where `soundmark up` and `serve core` serve by default.


class ProcessSettings(Settings):
    """Settings of every process."""

    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_format: Literal["text", "json"] | None = None
    metrics_port: Port | None = None
    metrics_host: ListenHost = "127.0.0.1"


class ServedSettings(ProcessSettings):
    """Settings of every serving process: its limits on connections, the proxies that it trusts, and how it ends."""

    drain_s: Annotated[int, Field(ge=0, le=600)] = 0

    connections_max: Annotated[int, Field(ge=16, le=1_000_000)] = 4096
    connections_per_address: Annotated[int, Field(ge=1, le=1_000_000)] = 512
    trusted_proxies: Networks = ()


class OutgoingSettings(Settings):
    """Settings of every process that connects to servers other than its database."""

    extra_ca_file: AuthoritiesFile | None = None


class PeopleSettings(Settings):
    """Settings of every process that people sign in to: the identity provider, or the operator without one."""

    oidc_issuer: OidcIssuer | None = None
    oidc_client_id: Annotated[OidcClientId | None, Field(validate_default=True)] = None
    operator_token: OperatorToken | None = None

    @field_validator("oidc_client_id")
    @classmethod
    def _require_issuer_and_client(cls, client: str | None, info: ValidationInfo) -> str | None:
        issuer = info.data.get("oidc_issuer", ...)
        if issuer is not ... and (issuer is None) != (client is None):
            raise disagreement("SOUNDMARK_OIDC_ISSUER and SOUNDMARK_OIDC_CLIENT_ID must both be set, or neither")
        return client


class SharedServerSettings(Settings):
    """Settings of every process that shares something with processes on other machines."""

    rate_limit_url: RateLimitUrl | None = None


class RefusalLimitSettings(SharedServerSettings):
    """Settings of every process that limits refused requests by client IP address."""

    refusal_rate_limit: Annotated[int, Field(ge=1)] = 600
    refusal_rate_window_s: Annotated[int, Field(ge=1, le=3600)] = 10


class SessionSettings(Settings):
    """Settings of every process that uses a database, and of its commands: what a session has."""

    synchronous_commit: Literal["on", "remote_apply"] = "on"
    database_options: bool = True


def counts_limits_alone(given: ProcessSettings, processes_count: int) -> bool:
    """Return whether a process counts limits alone although there are others, so that clients get each limit anew.

    Trusted proxies suggest processes on other machines.
    """
    if not isinstance(given, RefusalLimitSettings) or given.rate_limit_url is not None:
        return False
    return processes_count > 1 or (isinstance(given, ServedSettings) and bool(given.trusted_proxies))


class PoolSettings(Settings):
    """Settings of every process that holds a pool of database connections."""

    database_pool_size: Annotated[int, Field(ge=2, le=200)] = 10


def require_separate_databases(core: Secret | None, audience: Secret | None, audience_schema: str) -> None:
    """Require two databases and two roles, where both URLs are known; a schema of Audience's own is enough of one.

    Raises: PydanticCustomError.
    """
    if core is None or audience is None:
        return
    one, other = urlsplit(core.reveal()), urlsplit(audience.reveal())
    is_shared = one.path == other.path and audience_schema == PUBLIC_SCHEMA
    if set(servers_of(one.netloc)) & set(servers_of(other.netloc)) and (is_shared or one.username == other.username):
        raise disagreement(
            "SOUNDMARK_CORE_DATABASE_URL and SOUNDMARK_AUDIENCE_DATABASE_URL must name two databases and two roles"
        )
