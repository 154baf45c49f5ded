"""Settings of Audience, and of the commands that act on its database."""

from pydantic import ValidationInfo, field_validator

from soundmark.kit.crypto.secret import Secret
from soundmark.settings.fields import Credentials, DatabaseUrl, HttpUrl, MasterKey, SchemaName
from soundmark.settings.process import (
    LOCAL_CORE,
    PUBLIC_SCHEMA,
    PoolSettings,
    ProcessSettings,
    RefusalLimitSettings,
    ServedSettings,
    SessionSettings,
    require_separate_databases,
)


class AudienceDatabaseSettings(ProcessSettings, SessionSettings):
    """Settings of `soundmark work audience`, and of the commands that use only Audience's database."""

    audience_database_url: DatabaseUrl
    audience_schema: SchemaName = PUBLIC_SCHEMA

    @property
    def own_schema(self) -> str | None:
        """The schema of this Audience alone; None for `public`, which may be named otherwise by the role."""
        return None if self.audience_schema == PUBLIC_SCHEMA else self.audience_schema


class AudienceKeysSettings(AudienceDatabaseSettings):
    """Settings of the commands that open values sealed by Audience, which has a master key of its own."""

    master_key: MasterKey


class AudienceSettings(ServedSettings, AudienceKeysSettings, RefusalLimitSettings, PoolSettings):
    """Settings of `soundmark serve audience`. Problems of events link to pages at Core's `base_url`."""

    base_url: HttpUrl = LOCAL_CORE
    core_database_url: DatabaseUrl | None = None
    audience_credential: Credentials

    @field_validator("core_database_url")
    @classmethod
    def _require_separate_databases(cls, core: Secret | None, info: ValidationInfo) -> Secret | None:
        if "audience_schema" in info.data:
            require_separate_databases(core, info.data.get("audience_database_url"), info.data["audience_schema"])
        return core
