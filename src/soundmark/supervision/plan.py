"""The plan of what `soundmark up` runs: secrets, and the environment of each process."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias, cast

from soundmark import settings
from soundmark.kit.crypto.entropy import Entropy, SystemEntropy
from soundmark.kit.crypto.sealing import Sealer, parse_master_key
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.settings import PREFIX
from soundmark.kit.text import base64url
from soundmark.kit.text.ids import mint_secret
from soundmark.kit.text.validation import is_loopback_host
from soundmark.operating_system.os_user import OsUser
from soundmark.settings.console import derive_console_key
from soundmark.supervision.supervisor import Program, soundmark

LOOPBACK: Final = "127.0.0.1"
SANDBOX: Final = "sandbox"
CELLS_MAX: Final = 8  # Each has two processes, and up to twenty connections to the one PostgreSQL, which has 200.

# A component, of which there is one, or the Audience of a further cell, such as `audience-cell-2`.
Unit: TypeAlias = str

_GRACE_S: Final = 30  # After it has drained; that of `serve --workers` ends before.
_LOG_LEVEL: Final = "warning"  # Routine messages would bury what a person at a terminal needs to see.
_ANY_ADDRESS: Final = {"0.0.0.0": LOOPBACK, "::": "[::1]"}  # noqa: S104 - compared, not bound
# `up` decides these settings itself; other values would contradict what it runs.
_OWN_POSTGRES: Final = "`up` runs its own PostgreSQL; to use yours, run the components with `soundmark serve`"
_OWN_SANDBOX: Final = "`up --sandbox` sets it for its sandbox; unset it, or leave out --sandbox"
_OURS: Final = {
    "CORE_DATABASE_URL": _OWN_POSTGRES,
    "AUDIENCE_DATABASE_URL": _OWN_POSTGRES,
    "AUDIENCE_URL": "`up` runs Audience itself",
    "AUDIENCE_CELLS_FILE": "`up` runs Audience itself; say how often with --cells",
    "AUDIENCE_SCHEMA": _OWN_POSTGRES,
    "AUDIO_URL": "`up` runs Audio itself",
    "CORE_URL": "`up` runs Core itself",
    "CONSOLE_TICKETS_PATH": "`up` creates a folder for the tickets itself",
    "CONSOLE_STATE_PATH": "`up` creates a folder for the console itself",
    "METRICS_PORT": "`up` gives each component a port of its own",
}


class SettingGiven(Exception):
    """The environment has a setting that the caller must not set; the message is one line for the user."""


@dataclass(frozen=True, slots=True)
class SandboxPlan:
    """The settings, by name without prefix, with which Core uses a sandbox.

    `paths` are below the sandbox's address. `defaults` are what the caller may set otherwise.
    """

    paths: Mapping[str, str]
    credentials: Mapping[str, Secret]
    defaults: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Options:
    """The options of `up`; without `sandbox` there is none, and without `console_port` the usual port or another."""

    data_dir: Path
    host: str
    port: int
    workers_count: int
    sandbox: SandboxPlan | None = None
    console_port: int | None = None
    serve_as_root: bool = False  # Allowed where no other user can; it never is the choice otherwise.
    cells_count: int = 1


@dataclass(frozen=True, slots=True)
class Ports:
    """The ports of everything that listens."""

    serving: Mapping[Unit, int]
    metrics: Mapping[Unit, int]
    postgres: int
    sandbox: int | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """The places, settings and secrets of all processes, and the user that they run as (None: ourselves).

    `given` are the caller's settings, by name without prefix. `tickets` is the folder of the tickets with which the
    operator signs in to the console; None: the operator cannot. `console_state` is the folder for the console's state.
    `cells_file` is the file of several cells; None: there is one.
    """

    options: Options
    ports: Ports
    given: Mapping[str, str] = field(repr=False)
    credentials: Mapping[settings.Component, Secret]
    operator_token: Secret
    master_key: Secret
    database_urls: Mapping[Unit, Secret]
    tickets: Path | None = None
    console_state: Path | None = None
    user: OsUser | None = None
    cells_file: Path | None = None

    def units(self) -> list[Unit]:
        """Return the names of everything that serves, as in `COMPONENTS`, and after it the further cells."""
        return [*settings.COMPONENTS, *audience_units(self.options.cells_count)[1:]]

    def cells(self) -> dict[str, Unit]:
        """Return the Audience of each cell, by the cell's name."""
        units = audience_units(self.options.cells_count)
        return {unit.removeprefix("audience-") if unit != "audience" else settings.MAIN_CELL: unit for unit in units}

    def host(self, unit: Unit) -> str:
        """Return the address that `unit` listens on."""
        match unit:
            case "core":
                return self.options.host
            case "console":
                return choose_console_host(self.options, self.given)
            case _:
                return LOOPBACK

    def address(self, unit: Unit) -> str:
        """Return the URL of `unit` on this machine."""
        return _local_url(self.host(unit), self.ports.serving[unit])

    def metrics_url(self, unit: Unit) -> str:
        """Return the URL of the metrics of `unit` on this machine."""
        host = self.given.get("METRICS_HOST", LOOPBACK)
        return f"{_local_url(host, self.ports.metrics[unit])}/metrics"

    @property
    def can_operator_sign_in(self) -> bool:
        """Whether the operator can sign in to the console: at its own address on this machine, and without OIDC."""
        own = self.address("console")
        is_local = self.options.host in _ANY_ADDRESS or is_loopback_host(self.options.host)
        return is_local and "OIDC_ISSUER" not in self.given and self.given.get("CONSOLE_URL", own).rstrip("/") == own

    @property
    def sandbox_url(self) -> str | None:
        """The URL of the sandbox, if there is one."""
        return None if self.ports.sandbox is None else f"http://{LOOPBACK}:{self.ports.sandbox}"

    def settings_of(self, unit: Unit) -> dict[str, str]:
        """Return the settings of one unit, without any other component's secrets."""
        port = str(self.ports.metrics[unit])
        return {**self._select_settings(unit, settings.COMPONENTS[component_of(unit)]), f"{PREFIX}METRICS_PORT": port}

    def database_setting_of(self, unit: Unit) -> dict[str, str]:
        """Return the settings of a process that uses only the database of `unit`."""
        values = {"LOG_LEVEL": _LOG_LEVEL, **self.given}
        log_settings = {PREFIX + name: values[name] for name in ("LOG_LEVEL", "LOG_FORMAT") if name in values}
        return {**log_settings, PREFIX + _database_setting(unit): self.database_urls[unit].reveal()}

    def serving(self, unit: Unit) -> Program:
        """Return the process that serves `unit`."""
        where = ("--host", self.host(unit), "--port", str(self.ports.serving[unit]))
        argv = soundmark("serve", component_of(unit), *where, "--workers", str(self.options.workers_count))
        environ = {**foreign_environ(), **self.settings_of(unit)}
        grace_s = float(self.given.get("DRAIN_S", "0")) + _GRACE_S  # `check` has accepted it, maybe as "5.0".
        return Program(unit, argv, environ, grace_s=grace_s, user=self.user)

    def working(self, unit: Unit) -> Program:
        """Return the process that runs the background jobs of `unit`."""
        component = component_of(unit)
        taken = self._select_settings(unit, settings.JOBS[component])
        return Program(f"{unit} jobs", soundmark("work", component), {**foreign_environ(), **taken}, user=self.user)

    def sandboxing(self) -> Program:
        """Return the process of the sandbox, which sends its webhooks to Core on this machine."""
        argv = soundmark("sandbox", "--port", str(self.ports.sandbox), "--quiet")
        taken = self._select_settings("core", settings.SandboxSettings)
        environ = {**foreign_environ(), **taken, f"{PREFIX}BASE_URL": self.address("core")}
        return Program(SANDBOX, argv, environ, user=self.user)

    def migrating(self, unit: Unit) -> Program:
        """Return the process that brings the database of `unit` to the current schema, and ends."""
        environ = {**foreign_environ(), **self.database_setting_of(unit)}
        return Program(f"migrate {unit}", soundmark("migrate", component_of(unit)), environ, user=self.user)

    def describe_cells(self) -> list[dict[str, object]]:
        """Return the content of `cells_file`."""
        credential = self.credentials["audience"].reveal()
        return [
            {"name": name, "url": self.address(unit), "credential": credential, "takes_new": True}
            for name, unit in self.cells().items()
        ]

    def _select_settings(self, unit: Unit, model: type[settings.ProcessSettings]) -> dict[str, str]:
        """Return the settings of a process of `unit`, without any other component's secrets."""
        component = component_of(unit)
        taken = {name.upper() for name in model.model_fields}
        foreign = {_database_setting(name) for name in ("core", "audience") if name != component}
        values = {**self._make_secrets(), **self.given}
        if component == "audience":
            values["MASTER_KEY"] = audience_master_key(self.master_key).reveal()
            values[_database_setting(unit)] = self.database_urls[unit].reveal()
        if component == "core" and self.cells_file is not None:
            values["AUDIENCE_CELLS_FILE"] = str(self.cells_file)
            foreign |= {"AUDIENCE_URL", "AUDIENCE_CREDENTIAL"}
        if component == "console":
            # It gets a key derived from it, and the operator's token only if the operator can sign in there.
            foreign |= {"MASTER_KEY"} if self.tickets is not None else {"MASTER_KEY", "OPERATOR_TOKEN"}
        return {PREFIX + name: value for name, value in values.items() if name in taken - foreign}

    def _make_secrets(self) -> dict[str, str]:
        return {
            "LOG_LEVEL": _LOG_LEVEL,
            "BASE_URL": self.address("core"),
            "AUDIENCE_URL": self.address("audience"),
            "AUDIO_URL": self.address("audio"),
            "CORE_URL": self.address("core"),
            "CONSOLE_URL": self.address("console"),
            "CONSOLE_KEY": console_key(self.master_key).reveal(),
            **({} if self.tickets is None else {"CONSOLE_TICKETS_PATH": str(self.tickets)}),
            **({} if self.console_state is None else {"CONSOLE_STATE_PATH": str(self.console_state)}),
            "OPERATOR_TOKEN": self.operator_token.reveal(),
            # Without an identity provider only the operator signs in, and tries webhooks on this machine.
            "WEBHOOK_ALLOW_LOOPBACK": str("OIDC_ISSUER" not in self.given).lower(),
            "MASTER_KEY": self.master_key.reveal(),
            **{f"{name.upper()}_CREDENTIAL": secret.reveal() for name, secret in self.credentials.items()},
            **{_database_setting(name): self.database_urls[name].reveal() for name in ("core", "audience")},
            **self._make_sandbox_settings(),
        }

    def _make_sandbox_settings(self) -> dict[str, str]:
        sandbox = self.options.sandbox
        if sandbox is None:
            return {}
        return {
            **{name: f"{self.sandbox_url}{path}" for name, path in sandbox.paths.items()},
            **{name: secret.reveal() for name, secret in sandbox.credentials.items()},
            **sandbox.defaults,
        }


def component_of(unit: Unit) -> settings.Component:
    """Return the component that a unit is."""
    return "audience" if unit.startswith("audience-") else cast("settings.Component", unit)


def audience_units(cells_count: int) -> list[Unit]:
    """Return the Audience of each cell: the first is the component itself, in the cell `main`."""
    return ["audience", *(f"audience-cell-{number}" for number in range(2, cells_count + 1))]


def name_databases(cells_count: int = 1) -> dict[Unit, str]:
    """Return the name of each unit's database."""
    units = ["core", *audience_units(cells_count)]
    return {unit: f"soundmark_{unit.replace('-', '_')}" for unit in units}


def _database_setting(unit: Unit) -> str:
    return f"{component_of(unit).upper()}_DATABASE_URL"


def _local_url(host: str, port: int) -> str:
    host = _ANY_ADDRESS.get(host, f"[{host}]" if ":" in host else host)
    return f"http://{host}:{port}"


def audience_master_key(master_key: Secret) -> Secret:
    """Derive the master key of Audience, which opens nothing that Core has sealed."""
    sealer = Sealer(parse_master_key(master_key.reveal()), SystemEntropy())
    return Secret(base64url.encode(sealer.derive("audience")))


def console_key(master_key: Secret) -> Secret:
    """Derive the key of the console, the same that a console with this master key uses."""
    return Secret(base64url.encode(derive_console_key(parse_master_key(master_key.reveal()))))


def read_given_settings(environ: Mapping[str, str], sandbox: SandboxPlan | None = None) -> dict[str, str]:
    """Return the caller's settings, by name without prefix.

    Raises: SettingGiven for a setting that `up` decides itself.
    """
    given = {name.removeprefix(PREFIX): value for name, value in environ.items() if name.startswith(PREFIX) and value}
    ours = {**_OURS}
    if sandbox is not None:
        ours.update(dict.fromkeys([*sandbox.paths, *sandbox.credentials], _OWN_SANDBOX))
    for name in sorted(given.keys() & ours.keys()):
        raise SettingGiven(f"{PREFIX}{name} cannot be set here: {ours[name]}")
    return given


def choose_console_host(options: Options, given: Mapping[str, str]) -> str:
    """Return the address that the console listens on.

    It is loopback, unless the caller says at which secure address others reach the console.
    """
    return options.host if "CONSOLE_URL" in given else LOOPBACK


def choose_operator_token(given: Mapping[str, str], entropy: Entropy) -> Secret:
    """Return the caller's operator token, or a new one."""
    return Secret(given.get("OPERATOR_TOKEN") or mint_secret(entropy, "xop_"))


def audience_credential(master_key: Secret, entropy: Entropy) -> Secret:
    """Derive Core's credential for Audience under `up`; commands on the data dir can derive it too."""
    sealer = Sealer(parse_master_key(master_key.reveal()), entropy)
    return Secret(base64url.encode(sealer.derive("audience credential")))


def check(plan: Plan) -> None:
    """Refuse settings that a component would refuse, before anything runs.

    Raises: kit.settings.SettingsInvalid.
    """
    unknown = {PREFIX + name: value for name, value in plan.given.items()}
    for unit in plan.units():
        settings.read(settings.COMPONENTS[component_of(unit)], {**unknown, **plan.settings_of(unit)})


def foreign_environ() -> dict[str, str]:
    """Return the environment without our settings, since each process gets its own."""
    ours = (PREFIX, "PROMETHEUS_MULTIPROC_DIR")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)}
