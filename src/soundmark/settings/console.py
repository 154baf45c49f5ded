"""Settings of the console."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import Field, ValidationInfo, field_validator

from soundmark.kit.crypto.entropy import SystemEntropy
from soundmark.kit.crypto.sealing import Sealer, parse_master_key
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.settings import disagreement, environment_name
from soundmark.settings.fields import (
    FolderPath,
    HttpUrl,
    IntegrationId,
    MasterKey,
    OidcClientSecret,
    OidcResource,
    Origin,
    SecureUrl,
)
from soundmark.settings.process import (
    LOCAL_CORE,
    OutgoingSettings,
    PeopleSettings,
    ServedSettings,
    SharedServerSettings,
)

LOCAL_CONSOLE: Final = "http://127.0.0.1:8083"  # Where `soundmark up` and `serve console` serve by default.
_PURPOSE: Final = "console"  # Of the key that is derived from a master key.

V = TypeVar("V")


def _same_as_base_url(settings: Mapping[str, Any]) -> Any:
    return settings["base_url"]


class ConsoleSettings(ServedSettings, PeopleSettings, OutgoingSettings, SharedServerSettings):
    """Settings of `soundmark serve console`, which reaches everything through Core's public API."""

    base_url: HttpUrl = LOCAL_CORE
    core_url: HttpUrl = Field(default_factory=_same_as_base_url)
    console_url: Origin = LOCAL_CONSOLE
    console_key: MasterKey | None = None
    master_key: Annotated[MasterKey | None, Field(validate_default=True)] = None
    oidc_client_secret: OidcClientSecret | None = None
    oidc_resource: OidcResource | None = None
    console_tickets_path: FolderPath | None = None
    console_state_path: FolderPath | None = None
    publisher_url: SecureUrl | None = None
    publisher_integration_id: Annotated[IntegrationId | None, Field(validate_default=True)] = None

    @property
    def sealing_key(self) -> bytes:
        """The 32 bytes that seal cookies, the same in every process of the console."""
        if self.console_key is not None:
            return parse_master_key(self.console_key.reveal())
        assert self.master_key is not None, "one of the two is required"
        return derive_console_key(parse_master_key(self.master_key.reveal()))

    @property
    def sign_in(self) -> Literal["oidc", "ticket"] | None:
        """How people sign in: with the identity provider or, on this machine, a one-time ticket. None: nobody can."""
        if self.oidc_issuer is not None:
            return "oidc"
        return None if self.operator_token is None or self.console_tickets_path is None else "ticket"

    @field_validator("master_key")
    @classmethod
    def _require_key(cls, master_key: Secret | None, info: ValidationInfo) -> Secret | None:
        if master_key is None and info.data.get("console_key", ...) is None:
            raise disagreement("SOUNDMARK_CONSOLE_KEY or SOUNDMARK_MASTER_KEY must be set")
        return master_key

    @field_validator("oidc_client_secret", "oidc_resource")
    @classmethod
    def _require_issuer_of_client_settings(cls, value: V, info: ValidationInfo) -> V:
        if value is not None and info.data.get("oidc_issuer", ...) is None:
            raise disagreement(f"{environment_name(str(info.field_name))} requires SOUNDMARK_OIDC_ISSUER")
        return value

    @field_validator("publisher_integration_id")
    @classmethod
    def _require_whole_publisher(cls, integration_id: str | None, info: ValidationInfo) -> str | None:
        url = info.data.get("publisher_url", ...)
        if url is not ... and (url is None) != (integration_id is None):
            raise disagreement(
                "SOUNDMARK_PUBLISHER_URL and SOUNDMARK_PUBLISHER_INTEGRATION_ID must both be set, or neither"
            )
        return integration_id


def derive_console_key(master_key: bytes) -> bytes:
    """Derive the key with which a console without a key of its own seals cookies; it opens nothing of Core's."""
    return Sealer(master_key, SystemEntropy()).derive(_PURPOSE)
