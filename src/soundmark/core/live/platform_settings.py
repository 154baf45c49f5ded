"""The platform settings of a running process: from the database, else the environment, else the default."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar, cast

from soundmark.core.domain.platform.settings import (
    EffectiveSetting,
    SecretStatus,
    SettingSource,
    StoredSecret,
    StoredValue,
)
from soundmark.core.store.platform import settings as store
from soundmark.kit.crypto.sealing import Sealer
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.postgres.database import Database
from soundmark.kit.postgres.transaction import Tx
from soundmark.settings.registry import CONFIGURATION, CREDENTIALS, PlatformFallbacks, PlatformGroup

G = TypeVar("G", bound=PlatformGroup)


@dataclass(frozen=True, slots=True)
class PlatformOverview:
    """Every platform setting by name; for credentials, only whether they are configured."""

    secrets: Mapping[str, SecretStatus]
    configuration: Mapping[str, EffectiveSetting]


class PlatformSettings:
    """Reads the platform settings from the database each time, so that every process sees a change once it commits.

    Settings are read once for each mail or page, never for a resolution.
    """

    def __init__(self, db: Database, sealer: Sealer, fallbacks: PlatformFallbacks) -> None:
        self._db: Final = db
        self._sealer: Final = sealer
        given = PlatformFallbacks.model_fields.keys() & fallbacks.model_fields_set
        self._environment: Final[Mapping[str, Any]] = {name: getattr(fallbacks, name) for name in given}

    async def read(self, group: type[G]) -> G:
        """Read one group of settings in one snapshot. Only the credentials of this group are unsealed.

        Raises: DatabaseUnavailable; kit.crypto.sealing.SealBroken if a credential was sealed under another master key.
        """
        async with self._db.snapshot() as tx:
            return await self.read_within(tx, group)

    async def read_within(self, tx: Tx, group: type[G]) -> G:
        """Do the same as `read` in a transaction that is open already.

        Raises: kit.crypto.sealing.SealBroken.
        """
        secrets, values = await store.list_secrets(tx), await store.list_values(tx)
        opened = {secret.name: self._open(secret) for secret in secrets if secret.name in group.model_fields}
        given = {**self._environment, **_overrides(values), **opened}
        # Not validated again: a stricter rule in a later release must not disable a setting that works.
        return cast("G", group.model_construct(**given))

    async def list_all(self) -> PlatformOverview:
        """Return every setting in one snapshot. No credential is unsealed.

        Raises: DatabaseUnavailable.
        """
        async with self._db.snapshot() as tx:
            secrets, values = await store.list_secrets(tx), await store.list_values(tx)
        effective = PlatformFallbacks.model_construct(**{**self._environment, **_overrides(values)})
        updated_at = {row.name: row.updated_at for row in secrets} | {row.name: row.updated_at for row in values}
        return PlatformOverview(
            secrets={
                name: SecretStatus(name in updated_at or name in self._environment, updated_at.get(name))
                for name in CREDENTIALS
            },
            configuration={
                name: EffectiveSetting(getattr(effective, name), self._source(name, updated_at), updated_at.get(name))
                for name in CONFIGURATION
            },
        )

    def seal(self, name: str, value: Secret) -> bytes:
        """Return the stored form of a credential, which can be unsealed only under this name."""
        return self._sealer.seal(value.reveal().encode(), table="platform_secrets", column="sealed", row=name)

    def _open(self, secret: StoredSecret) -> Secret:
        opened = self._sealer.unseal(secret.sealed, table="platform_secrets", column="sealed", row=secret.name)
        return Secret(opened.decode())

    def _source(self, name: str, stored: Mapping[str, Any]) -> SettingSource:
        if name in stored:
            return "database"
        return "environment" if name in self._environment else "default"


def _overrides(values: Sequence[StoredValue]) -> dict[str, Any]:
    return {row.name: json.loads(row.value) for row in values}
