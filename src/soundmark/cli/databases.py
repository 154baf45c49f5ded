"""Commands that touch nothing of a component but its database."""

from pathlib import Path
from typing import Literal

from soundmark.cli.deployment import read_settings
from soundmark.kit.secret import Secret
from soundmark.settings import AudienceDatabaseSettings, CoreDatabaseSettings, ProcessSettings

WithDatabase = Literal["core", "audience"]


def database_settings(component: WithDatabase, data_dir: Path | None) -> tuple[Secret, ProcessSettings]:
    """Where the database of `component` is, and what every process is told.

    Raises: Refused.
    """
    if component == "core":
        core = read_settings(CoreDatabaseSettings, data_dir)
        return core.core_database_url, core
    audience = read_settings(AudienceDatabaseSettings, data_dir)
    return audience.audience_database_url, audience
