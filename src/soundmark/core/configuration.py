"""What an operator may change while everything runs: the database's word, else the environment's, else the default."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from soundmark.core.domain.platform import (
    CONFIGURATION_NAMES,
    SECRET_NAMES,
    ConfigurationName,
    Effective,
    SecretName,
    SecretStatus,
    StoredSecret,
    StoredValue,
    Value,
    default_of,
)
from soundmark.core.store import platform_settings
from soundmark.kit.postgres import Database
from soundmark.kit.sealing import Sealer
from soundmark.kit.secret import Secret


@dataclass(frozen=True, slots=True)
class FromEnvironment:
    """What the environment of this process says, checked already. What is not there it does not say."""

    values: Mapping[ConfigurationName, Value] = field(default_factory=dict)
    secrets: Mapping[SecretName, Secret] = field(default_factory=dict)


def from_environment(given: Mapping[str, object]) -> FromEnvironment:
    """What the settings of a process say, by their names; each name that is a platform setting, unless it is None."""
    return FromEnvironment(
        values={name: value for name in CONFIGURATION_NAMES if isinstance(value := given.get(name), Value)},
        secrets={name: secret for name in SECRET_NAMES if isinstance(secret := given.get(name), Secret)},
    )


@dataclass(frozen=True, slots=True)
class Smtp:
    """The mail server to send through, and as whom."""

    host: str
    port: int
    is_implicit_tls: bool
    from_email: str
    from_name: str
    username: Secret | None
    password: Secret | None


@dataclass(frozen=True, slots=True)
class Everything:
    """Every setting by its name; of credentials only that they are there."""

    secrets: Mapping[SecretName, SecretStatus]
    values: Mapping[ConfigurationName, Effective]


class Configuration:
    """Reads the database each time it is asked, so every process goes by a change from its commit on.

    What is asked here is asked once for a mail or a page, never for a resolution.
    """

    def __init__(self, db: Database, sealer: Sealer, environment: FromEnvironment) -> None:
        self._db: Final = db
        self._sealer: Final = sealer
        self._environment: Final = environment

    async def smtp(self) -> Smtp | None:
        """The mail server; None where no host, or no address to send from, is configured.

        Raises: DatabaseUnavailable; kit.sealing.SealBroken where the password was sealed under another master key.
        """
        secrets, stored = await self._read()
        values = self._effective(stored)
        if not _has_mail(values):
            return None
        port = values["smtp_port"].value
        assert isinstance(port, int), "checked when it was set"
        return Smtp(
            host=str(values["smtp_host"].value),
            port=port,
            is_implicit_tls=bool(values["smtp_secure"].value),
            from_email=str(values["smtp_from_email"].value),
            from_name=str(values["smtp_from_name"].value),
            username=self._secret("smtp_username", secrets),
            password=self._secret("smtp_password", secrets),
        )

    async def has_mail(self) -> bool:
        """Whether there is a mail server and an address to send from. No credential is opened for it.

        Raises: DatabaseUnavailable.
        """
        _, stored = await self._read()
        return _has_mail(self._effective(stored))

    async def everything(self) -> Everything:
        """Every setting as of one moment. No credential is opened for it.

        Raises: DatabaseUnavailable.
        """
        secrets, stored = await self._read()
        known = {secret.name: secret.updated_at for secret in secrets}
        return Everything(
            secrets={
                name: SecretStatus(name in known or name in self._environment.secrets, known.get(name))
                for name in SECRET_NAMES
            },
            values=self._effective(stored),
        )

    def seal(self, name: SecretName, value: Secret) -> bytes:
        """The stored form of a credential, which opens under no other name."""
        return self._sealer.seal(value.reveal().encode(), table="platform_secrets", column="sealed", row=name)

    async def _read(self) -> tuple[list[StoredSecret], list[StoredValue]]:
        async with self._db.snapshot() as tx:
            return await platform_settings.list_secrets(tx), await platform_settings.list_values(tx)

    def _effective(self, stored: list[StoredValue]) -> dict[ConfigurationName, Effective]:
        overrides = {row.name: row for row in stored}
        secure = self._one("smtp_secure", overrides, is_implicit_tls=True)
        return {name: self._one(name, overrides, is_implicit_tls=bool(secure.value)) for name in CONFIGURATION_NAMES}

    def _one(
        self, name: ConfigurationName, overrides: Mapping[str, StoredValue], *, is_implicit_tls: bool
    ) -> Effective:
        override = overrides.get(name)
        if override is not None:
            return Effective(json.loads(override.value), "database", override.updated_at)
        if name in self._environment.values:
            return Effective(self._environment.values[name], "environment", None)
        return Effective(default_of(name, is_implicit_tls=is_implicit_tls), "default", None)

    def _secret(self, name: SecretName, stored: list[StoredSecret]) -> Secret | None:
        for secret in stored:
            if secret.name == name:
                opened = self._sealer.unseal(secret.sealed, table="platform_secrets", column="sealed", row=name)
                return Secret(opened.decode())
        return self._environment.secrets.get(name)


def _has_mail(values: Mapping[ConfigurationName, Effective]) -> bool:
    return values["smtp_host"].value is not None and values["smtp_from_email"].value is not None
