"""The `soundmark` commands that deployment files run, and the settings that each of them reads."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from soundmark import settings
from soundmark.kit.settings import environment_name

ROOT: Final = Path(__file__).parents[3]
DEPLOY: Final = ROOT / "deploy"

_MODELS: Final[Mapping[tuple[str, str], type[settings.ProcessSettings]]] = {
    **{("serve", component): model for component, model in settings.COMPONENTS.items()},
    **{("work", component): model for component, model in settings.JOBS.items()},
    ("migrate", "core"): settings.CoreDatabaseSettings,
    ("migrate", "audience"): settings.AudienceDatabaseSettings,
}


def find_model(command: Iterable[str]) -> type[settings.ProcessSettings]:
    """Return the settings that `soundmark COMMAND` reads."""
    verb, component, *_ = command
    return _MODELS[verb, component]


def check_settings(command: Iterable[str], environ: Iterable[str]) -> None:
    """Fail unless `environ` names every setting that `soundmark COMMAND` needs, and only settings that exist."""
    names = set(environ)
    known = {environment_name(name) for name in settings.NAMES}
    unknown = {name for name in names if name.startswith("SOUNDMARK_")} - known
    assert not unknown, "there are no such settings"
    fields = find_model(command).model_fields
    required = {environment_name(name) for name, field in fields.items() if field.is_required()}
    assert required <= names, "settings are missing"
