"""The settings of every process: one module for each component, and the registry of platform settings.

Only the composition roots and the command line read them. docs/settings.md explains each.
"""

from collections.abc import Mapping
from typing import Final, Literal, TypeVar

from soundmark.kit.settings import read_settings
from soundmark.settings.audience import AudienceDatabaseSettings as AudienceDatabaseSettings
from soundmark.settings.audience import AudienceKeysSettings as AudienceKeysSettings
from soundmark.settings.audience import AudienceSettings as AudienceSettings
from soundmark.settings.audio import AudioSettings as AudioSettings
from soundmark.settings.cells import MAIN_CELL as MAIN_CELL
from soundmark.settings.commands import ClientSettings as ClientSettings
from soundmark.settings.commands import ContractSettings as ContractSettings
from soundmark.settings.commands import SandboxSettings as SandboxSettings
from soundmark.settings.commands import UpSettings as UpSettings
from soundmark.settings.console import ConsoleSettings as ConsoleSettings
from soundmark.settings.core import CellCommandSettings as CellCommandSettings
from soundmark.settings.core import CoreDatabaseSettings as CoreDatabaseSettings
from soundmark.settings.core import CoreJobsSettings as CoreJobsSettings
from soundmark.settings.core import CoreSettings as CoreSettings
from soundmark.settings.core import KeysSettings as KeysSettings
from soundmark.settings.core import RotationSettings as RotationSettings
from soundmark.settings.process import ProcessSettings as ProcessSettings
from soundmark.settings.process import ServedSettings as ServedSettings
from soundmark.settings.process import counts_limits_alone as counts_limits_alone

Component = Literal["core", "audience", "audio", "console"]
WithDatabase = Literal["core", "audience"]

COMPONENTS: Final[Mapping[Component, type[ServedSettings]]] = {
    "core": CoreSettings,
    "audience": AudienceSettings,
    "audio": AudioSettings,
    "console": ConsoleSettings,
}
JOBS: Final[Mapping[Component, type[ProcessSettings]]] = {
    "core": CoreJobsSettings,
    "audience": AudienceDatabaseSettings,
}
# Everything that reads settings, by the word that docs/settings.md uses for it.
READERS: Final[Mapping[str, type[ProcessSettings]]] = {
    "core": CoreSettings,
    "audience": AudienceSettings,
    "audio": AudioSettings,
    "console": ConsoleSettings,
    "core jobs": CoreJobsSettings,
    "core database": CoreDatabaseSettings,
    "audience jobs": AudienceDatabaseSettings,
    "audience keys": AudienceKeysSettings,
    "keys": KeysSettings,
    "rotation": RotationSettings,
    "cell commands": CellCommandSettings,
    "contract": ContractSettings,
    "client": ClientSettings,
    "up": UpSettings,
    "sandbox": SandboxSettings,
}
NAMES: Final = frozenset(name for model in READERS.values() for name in model.model_fields)

S = TypeVar("S", bound=ProcessSettings)


def read(model: type[S], environ: Mapping[str, str]) -> S:
    """Read the settings of `model` from `environ`.

    Raises: kit.settings.SettingsInvalid, naming every wrong setting.
    """
    return read_settings(model, environ, known=NAMES)
