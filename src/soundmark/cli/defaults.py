"""The default organisation and project of a person: one choice for each service, in the user's own config folder."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from soundmark.cli import Refused
from soundmark.operating_system.files import write_private

_FILE: Final = Path("soundmark", "defaults.json")
# Enough for thousands of services: we did not write a larger file.
_BYTES_MAX: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class TenantChoice:
    """A choice made with `soundmark use`; `project_id` is None if only an organisation was chosen."""

    organization_id: str
    project_id: str | None = None


def defaults_file() -> Path:
    """Return the path of the file with the choices.

    Raises: Refused if the user has no home folder.

    Source: XDG Base Directory Specification 0.8: ignore a relative path.
    """
    configured = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    if configured.is_absolute():
        return configured / _FILE
    try:
        return Path.home() / ".config" / _FILE
    except RuntimeError:
        raise Refused("there is no home folder to save the choice in; set XDG_CONFIG_HOME") from None


def find_choice(base_url: str) -> TenantChoice | None:
    """Return the choice for a service, or None.

    Raises: Refused if `save_choice` did not write the file.
    """
    chosen = _read().get(base_url)
    if chosen is None:
        return None
    match chosen:
        case {"organization_id": str(organization_id), "project_id": str() | None as project_id}:
            return TenantChoice(organization_id, project_id)
        case _:
            raise _foreign()


def save_choice(base_url: str, choice: TenantChoice | None) -> None:
    """Save a choice for a service, replacing the previous one; None removes it.

    Raises: Refused.
    """
    choices = _read()
    choices.pop(base_url, None)
    if choice is not None:
        choices[base_url] = asdict(choice)
    file = defaults_file()
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(file, json.dumps(choices, indent=2) + "\n")
    except OSError as error:
        raise Refused(f"{file} cannot be written: {error.strerror}") from None


def _read() -> dict[str, Any]:
    try:
        file = defaults_file()
    except Refused:
        return {}  # Where there is no home folder, nothing was chosen.
    try:
        with file.open("rb") as opened:
            choices = json.loads(opened.read(_BYTES_MAX))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise Refused(f"{file} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise _foreign() from None
    if not isinstance(choices, dict):
        raise _foreign()
    return choices


def _foreign() -> Refused:
    return Refused(f"{defaults_file()} was not written by `soundmark use`; remove it")
