"""Settings from the environment: read once, checked together, unknown names refused."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import PydanticCustomError

PREFIX: Final = "SOUNDMARK_"
# The validation context of values from the environment; some checks are stricter for other values.
ENVIRONMENT: Final = "environment"
_DISAGREEMENT: Final = "settings_disagree"


class SettingsInvalid(Exception):
    """The environment does not configure the component; `faults` names every wrong setting and the reason."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__("; ".join(faults))
        self.faults = faults


class Settings(BaseModel):
    """The base of every component's settings."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True, arbitrary_types_allowed=True)


S = TypeVar("S", bound=Settings)


def environment_name(name: str) -> str:
    """Return the environment variable of the setting `name`."""
    return PREFIX + name.upper()


def read_settings(model: type[S], environ: Mapping[str, str], *, known: Iterable[str]) -> S:
    """Read the settings of one component from `SOUNDMARK_…` variables. An empty value counts as unset.

    `known` are the settings of all components, because one environment may configure several.

    Raises: SettingsInvalid, which names every wrong, missing and unknown setting at once, without their values.
    """
    given = {name: value for name, value in environ.items() if name.startswith(PREFIX)}
    known_variables = {environment_name(name) for name in known}
    faults = [f"{name}: no such setting" for name in sorted(set(given) - known_variables)]
    values = {name: value for name in model.model_fields if (value := given.get(environment_name(name)))}
    try:
        settings = model.model_validate(values, context=ENVIRONMENT)
    except ValidationError as invalid:
        faults += _describe_faults(invalid)
        raise SettingsInvalid(faults) from None
    if faults:
        raise SettingsInvalid(faults)
    return settings


def disagreement(message: str) -> PydanticCustomError:
    """Return the error of several settings that do not fit together; `message` names each of them.

    The validator of a field raises it, the last of these fields, and reads the others from `info.data`, which lacks
    what is wrong by itself. A validator of the model would run only if every field is right, and name its fault late.
    """
    return PydanticCustomError(_DISAGREEMENT, "{message}", {"message": message})


def error_message(message: str) -> str:
    """Return a message from Pydantic without the prefix that it adds to ours."""
    return message.removeprefix("Value error, ")


def _describe_faults(invalid: ValidationError) -> Iterator[str]:
    for error in invalid.errors(include_input=False):
        loc, message = error["loc"], error["msg"]
        if error["type"] == "missing":
            message = "is not set"
        # If any setting is wrong, Pydantic also reports defaults that depend on other settings.
        if error["type"] != "default_factory_not_called":
            names_one = loc and error["type"] != _DISAGREEMENT
            yield (f"{environment_name(str(loc[0]))}: " if names_one else "") + error_message(message)
