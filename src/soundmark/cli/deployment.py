"""The settings of a command that acts on a deployment: the environment, completed by the data dir of an `up`.

The environment takes precedence, setting by setting.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeVar

import typer

from soundmark import settings
from soundmark.cli import Refused
from soundmark.kit.crypto.entropy import SystemEntropy
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.settings import PREFIX, SettingsInvalid

DataDir = Annotated[
    Path | None,
    typer.Option(
        "--data-dir", metavar="DIR", help="The data dir of a running `soundmark up`; the environment takes precedence."
    ),
]

_FROM_UP_FILE: Final = {
    "audience_cells_file": "AUDIENCE_CELLS_FILE",
    "audience_database_url": "AUDIENCE_DATABASE_URL",
    "audience_url": "AUDIENCE_URL",
    "base_url": "BASE_URL",
    "core_database_url": "CORE_DATABASE_URL",
}

_DATA_DIR_HINT: Final = "; add --data-dir .soundmark, if `soundmark up` runs here"

S = TypeVar("S", bound=settings.ProcessSettings)


def read_settings(model: type[S], data_dir: Path | Literal[False] | None = False) -> S:
    """Read the settings of `model`. The default of `data_dir` is for commands without that option.

    Raises: Refused, naming every wrong or missing setting in one line.
    """
    try:
        return settings.read(model, deployment_environ(data_dir or None))
    except SettingsInvalid as invalid:
        could_help = data_dir is None and any(fault.endswith("is not set") for fault in invalid.faults)
        raise Refused(f"{invalid}{_DATA_DIR_HINT if could_help else ''}") from None


def read_audience_databases(data_dir: Path | None = None) -> dict[str, settings.AudienceDatabaseSettings]:
    """Read the settings of Audience's database, and of that of each further cell in the data dir, by unit.

    Raises: Refused.
    """
    found = {"audience": read_settings(settings.AudienceDatabaseSettings, data_dir)}
    if data_dir is not None:
        for cell in _read_up_file(data_dir).get("cells", [])[1:]:
            url = Secret(cell["audience_database_url"])
            found[f"audience-{cell['name']}"] = found["audience"].model_copy(update={"audience_database_url": url})
    return found


def deployment_environ(data_dir: Path | None) -> Mapping[str, str]:
    """Return the environment, completed by the settings of the data dir.

    Raises: Refused if nothing runs in the data dir.
    """
    if data_dir is None:
        return os.environ
    from soundmark.supervision.data_dir import MASTER_KEY_FILE  # noqa: PLC0415 - see below

    up = _read_up_file(data_dir)
    known = {PREFIX + setting: str(up[member]) for member, setting in _FROM_UP_FILE.items() if member in up}
    key_file = data_dir / MASTER_KEY_FILE
    if key_file.exists():
        known[f"{PREFIX}MASTER_KEY"] = key_file.read_text(encoding="utf-8").strip()
    known |= _credential_of(overlay_environment(known))
    if f"{PREFIX}AUDIENCE_CELLS_FILE" in known:  # They are in the file.
        del known[f"{PREFIX}AUDIENCE_URL"], known[f"{PREFIX}AUDIENCE_CREDENTIAL"]
    return overlay_environment(known)


def _read_up_file(data_dir: Path) -> dict[str, Any]:
    """Raises: Refused."""
    # Imported only now, so that a serving process, which has no data dir, loads nothing of `up`.
    from soundmark.supervision.data_dir import UP_FILE, DataDirRefused, read_up_file  # noqa: PLC0415 - see above

    try:
        return read_up_file(data_dir / UP_FILE)
    except DataDirRefused as refused:
        raise Refused(str(refused)) from None


def overlay_environment(known: Mapping[str, str]) -> dict[str, str]:
    """Return `known`, overridden by the environment. An empty value counts as unset and overrides nothing."""
    return {**known, **{name: value for name, value in os.environ.items() if value or name not in known}}


def _credential_of(environ: Mapping[str, str]) -> Mapping[str, str]:
    """Return Audience's credential as `up` derives it from the master key; nothing if there is no master key."""
    from soundmark.supervision.plan import audience_credential  # noqa: PLC0415 - see above

    try:
        credential = audience_credential(Secret(environ.get(f"{PREFIX}MASTER_KEY", "")), SystemEntropy())
    except ValueError:
        return {}
    return {f"{PREFIX}AUDIENCE_CREDENTIAL": credential.reveal()}
