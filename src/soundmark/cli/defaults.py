"""The organisation and project that a person works in: one choice for each service, in the user's own config folder."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from soundmark.cli.errors import Refused
from soundmark.operating_system.files import write_private

_FILE: Final = Path("soundmark", "defaults.json")
# Sixteen services or a thousand: what is larger was not written by us.
_BYTES_MAX: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class TenantChoice:
    """What `soundmark use` chose; `project_id` None where only an organisation was."""

    organization_id: str
    project_id: str | None = None


def defaults_file() -> Path:
    """Return where the choices are kept.

    Raises: Refused where there is no home.

    Source: XDG Base Directory Specification 0.8: a relative path is no path.
    """
    configured = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    if configured.is_absolute():
        return configured / _FILE
    try:
        return Path.home() / ".config" / _FILE
    except RuntimeError:
        raise Refused("there is no home folder to remember a choice in; set XDG_CONFIG_HOME") from None


def find_choice(base_url: str) -> TenantChoice | None:
    """Return what was chosen for a service, or None.

    Raises: Refused for a file that `save_choice` did not write.
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
    """Remember a choice for a service in the place of the one before; None forgets it.

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
    file = defaults_file()
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
    return Refused(f"{defaults_file()} is not what `soundmark use` writes; remove it")
