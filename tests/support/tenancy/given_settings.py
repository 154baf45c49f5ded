"""Platform settings that a test gives, in place of a database's."""

from typing import Any, TypeVar, cast

from soundmark.core.live.platform_settings import PlatformSettings
from soundmark.settings.registry import PlatformGroup

G = TypeVar("G", bound=PlatformGroup)


class _Given:
    def __init__(self, values: dict[str, Any]) -> None:
        self._values = values

    async def read(self, group: type[G]) -> G:
        return group.model_construct(**self._values)


def given_settings(**values: Any) -> PlatformSettings:
    """Return settings with these values and defaults for everything else."""
    return cast("PlatformSettings", _Given(values))
