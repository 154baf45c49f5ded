"""Settings of Audience, and of the commands that act on its database."""

from pydantic import model_validator

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

    @model_validator(mode="after")
    def _require_separate_databases(self) -> "AudienceSettings":
        require_separate_databases(self.core_database_url, self.audience_database_url, self.audience_schema)
        return self
