"""Settings from the environment: read once, validated whole, unknown names refused."""

from collections.abc import Iterable, Mapping
from typing import Final, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

PREFIX: Final = "SOUNDMARK_"


class SettingsInvalid(Exception):  # noqa: N818 - named for what was found
    """The environment does not configure the component; `faults` names every setting at fault and why."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__("; ".join(faults))
        self.faults = faults


class Settings(BaseModel):
    """The base of every component's settings."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True, arbitrary_types_allowed=True)


S = TypeVar("S", bound=Settings)


def read_settings(model: type[S], environ: Mapping[str, str], *, known: Iterable[str]) -> S:
    """The settings of one component from `SOUNDMARK_…` variables; an empty value counts as unset.

    `known` are all names, without prefix, that any component takes: one environment may configure several.

    Raises: SettingsInvalid, which names every wrong, missing and unknown setting at once and echoes no value.
    """
    given = {name.removeprefix(PREFIX): value for name, value in environ.items() if name.startswith(PREFIX)}
    faults = [f"{PREFIX}{name}: no such setting" for name in sorted(set(given) - set(known))]
    values = {name: given[name.upper()] for name in model.model_fields if given.get(name.upper())}
    try:
        settings = model.model_validate(values)
    except ValidationError as error:
        faults += [_fault(item["loc"], item["msg"]) for item in error.errors(include_input=False, include_url=False)]
        raise SettingsInvalid(faults) from None
    if faults:
        raise SettingsInvalid(faults)
    return settings


def _fault(loc: tuple[int | str, ...], message: str) -> str:
    name = f"{PREFIX}{str(loc[0]).upper()}: " if loc else ""
    return name + ("is not set" if message == "Field required" else message.removeprefix("Value error, "))
