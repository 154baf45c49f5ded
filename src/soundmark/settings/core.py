"""Settings of Core, and of the commands that act on its database."""

from typing import Annotated

from pydantic import Field, ValidationInfo, field_validator

from soundmark.settings.cells import CellsFile
from soundmark.settings.fields import (
    Credentials,
    Currency,
    DatabaseUrl,
    EvidencePath,
    HttpUrl,
    MailName,
    MasterKey,
    Port,
    SchemaName,
)
from soundmark.settings.process import (
    PUBLIC_SCHEMA,
    OutgoingSettings,
    PeopleSettings,
    PoolSettings,
    ProcessSettings,
    RefusalLimitSettings,
    ServedSettings,
    SessionSettings,
    require_separate_databases,
)
from soundmark.settings.registry import PlatformFallbacks, ServiceUrl
from soundmark.settings.transparency import TransparencySettings


class PrivateSettings(OutgoingSettings):
    """Settings of every process that calls a private component."""

    private_timeout_s: Annotated[float, Field(ge=1, le=60)] = 5
    private_response_bytes_max: Annotated[int, Field(ge=1024, le=16 * 1024 * 1024)] = 8 * 1024 * 1024


class AudienceChannelSettings(PrivateSettings):
    """Settings of every process that calls Audience: one, or those of a file of cells."""

    audience_cells_file: CellsFile | None = None
    audience_url: Annotated[HttpUrl | None, Field(validate_default=True)] = None
    audience_credential: Annotated[Credentials | None, Field(validate_default=True)] = None

    @field_validator("audience_url", "audience_credential")
    @classmethod
    def _require_one_or_cells(cls, value: object, info: ValidationInfo) -> object:
        # For each setting by itself, so that it is named together with all other wrong settings.
        has_file = info.data.get("audience_cells_file", ...)  # Missing if the file is wrong, which is reported itself.
        if has_file is None and value is None:
            raise ValueError("is not set")
        if has_file not in {None, ...} and value is not None:
            raise ValueError("cannot be set beside SOUNDMARK_AUDIENCE_CELLS_FILE")
        return value


class CoreDatabaseSettings(ProcessSettings, SessionSettings):
    """Settings of the commands that use only Core's database."""

    core_database_url: DatabaseUrl


class KeysSettings(CoreDatabaseSettings):
    """Settings of the commands that open values sealed by Core."""

    master_key: MasterKey


class RotationSettings(KeysSettings, AudienceChannelSettings):
    """Settings of the commands that activate a signing key, which Audience must know before it signs."""


class CellCommandSettings(CoreDatabaseSettings, AudienceChannelSettings):
    """Settings of the commands that import aggregates into Audience, or name the cell of an organisation."""


class CoreJobsSettings(KeysSettings, PlatformFallbacks, AudienceChannelSettings, PoolSettings, TransparencySettings):
    """Settings of `soundmark work core`."""

    base_url: HttpUrl
    console_url: HttpUrl | None = None
    card_api_url: ServiceUrl = "https://api.stripe.com"
    local_api_url: ServiceUrl = "https://developers.flouci.com"
    local_verifications_per_minute: Annotated[int, Field(ge=1)] = 30
    accounting_currency: Currency = "TND"
    smtp_greeting: MailName | None = None
    webhook_allow_loopback: bool = False
    jobs_metrics_port: Port | None = None
    release_evidence_path: EvidencePath | None = None


class CoreSettings(ServedSettings, CoreJobsSettings, PeopleSettings, RefusalLimitSettings):
    """Settings of `soundmark serve core`."""

    audience_database_url: DatabaseUrl | None = None
    audience_schema: Annotated[SchemaName, Field(validate_default=True)] = PUBLIC_SCHEMA
    audio_url: HttpUrl
    audio_credential: Credentials
    support_native_signature: bool = False
    organizations_per_user: Annotated[int, Field(ge=1)] = 50
    export_bytes_max: Annotated[int, Field(ge=1024)] = 1024 * 1024 * 1024
    resolve_rate_limit: Annotated[int, Field(ge=1)] = 120
    resolve_rate_window_s: Annotated[int, Field(ge=1, le=3600)] = 10

    @field_validator("audience_schema")
    @classmethod
    def _require_separate_databases(cls, schema: str, info: ValidationInfo) -> str:
        require_separate_databases(info.data.get("core_database_url"), info.data.get("audience_database_url"), schema)
        return schema
