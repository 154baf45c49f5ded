"""The service that a command calls, and the credential it calls with: option, then environment, then data dir."""

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from soundmark import settings
from soundmark.cli import Refused
from soundmark.cli.deployment import overlay_environment
from soundmark.cli.options import Connection
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.settings import PREFIX, SettingsInvalid
from soundmark.kit.text.credentials import read_credential
from soundmark.kit.text.validation import split_url
from soundmark.operating_system.files import NotTrusted, read_trusted
from soundmark.settings import ClientSettings
from soundmark.supervision.data_dir import UP_FILE, DataDirRefused, NothingRuns, read_up_file

# The default data dir of `soundmark up`.
_HERE: Final = Path(".soundmark")
_OTHERS: Final = 0o077
_FILE_BYTES_MAX: Final = 64 * 1024  # More than any credential has, with what may be around it.


@dataclass(frozen=True, slots=True)
class Service:
    """A service. `api_key` comes from the environment, `operator_token` from a data dir."""

    base_url: str
    api_key: Secret | None
    operator_token: Secret | None


def find_service(connection: Connection) -> Service:
    """Return the service that the options, the environment or the data dir names, in this order.

    The default data dir is the one in the current folder, if an `up` of the same user runs there. Its operator token
    is used for its own URL only.

    Raises: Refused if nothing runs in a given data dir, and for wrong settings.
    """
    data_dir = connection.data_dir
    up = _read_own_up_file() if data_dir is None else _read_up_file(data_dir / UP_FILE)
    known = {f"{PREFIX}BASE_URL": up["base_url"]} if isinstance(up.get("base_url"), str) else {}
    try:
        given = settings.read(ClientSettings, overlay_environment(known))
    except SettingsInvalid as invalid:
        raise Refused(str(invalid)) from None
    address = given.base_url if connection.base_url is None else connection.base_url
    if "@" in split_url(address).netloc:
        raise Refused("the base URL must have no credentials")  # Other faults are named with the URL.
    token = up.get("operator_token")
    is_its_own = data_dir is not None or address == up.get("base_url")
    operator_token = Secret(token) if isinstance(token, str) and is_its_own else None
    return Service(address.rstrip("/"), given.api_key, operator_token)


def find_credential(service: Service, key_file: Path | None) -> str:
    """Return the credential with which a command calls the service.

    Raises: Refused.
    """
    if key_file is not None:
        return read_private_file(key_file)
    if service.api_key is not None:
        return service.api_key.reveal()
    if service.operator_token is not None:
        return service.operator_token.reveal()
    raise Refused("no credential was given: set SOUNDMARK_API_KEY, or give --key-file or --data-dir")


def read_private_file(file: Path) -> str:
    """Return the credential in a file to which only its owner has access, or from a pipe.

    It may be in quotes or stand behind `NAME=`, as in an environment file.

    Raises: Refused.
    """
    try:
        with file.open("rb") as opened:
            status = os.fstat(opened.fileno())
            if stat.S_ISREG(status.st_mode) and status.st_mode & _OTHERS:
                raise Refused(f"other users have access to {file}; run: chmod 600 {file}")
            return read_credential(opened.read(_FILE_BYTES_MAX).decode("utf-8", errors="replace"))
    except OSError as error:
        raise Refused(f"{file} cannot be read: {error.strerror}") from None
    except ValueError as malformed:
        raise Refused(f"{file} {malformed}") from None


def _read_up_file(file: Path) -> Mapping[str, Any]:
    try:
        return read_up_file(file)
    except DataDirRefused as refused:
        raise Refused(str(refused)) from None


def _read_own_up_file() -> Mapping[str, Any]:
    """Return the up-file in the current folder; nothing if no `up` runs or another user could have written it."""
    file = _HERE / UP_FILE
    try:
        read_trusted(file)
        return read_up_file(file)
    except (NothingRuns, NotTrusted, OSError, ValueError):
        return {}
    except DataDirRefused as refused:
        raise Refused(str(refused)) from None
