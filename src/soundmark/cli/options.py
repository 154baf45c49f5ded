"""The options that commands share, and how a record of options becomes a part of a command's signature."""

import functools
import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import MISSING, dataclass, fields, is_dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

import typer

from soundmark.kit.text.timestamps import parse_timestamp

F = TypeVar("F", bound=Callable[..., None])

_DURATION: Final = re.compile(r"([1-9][0-9]{0,5})(s|m|h|d)")
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}

BaseUrl = Annotated[
    str | None,
    typer.Option(
        "--base-url",
        metavar="URL",
        help="The service's URL. Default: SOUNDMARK_BASE_URL, the data dir's, or http://127.0.0.1:8080.",
    ),
]
KeyFile = Annotated[
    Path | None,
    typer.Option(
        "--key-file",
        metavar="FILE",
        help="The file with an API key or access token, which only you can access. Default: SOUNDMARK_API_KEY.",
    ),
]
UpDir = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        metavar="DIR",
        help="The data dir of a running `soundmark up` to call; without a key, as its operator. Default: .soundmark.",
    ),
]
Organization = Annotated[
    str | None,
    typer.Option(
        "--organization",
        metavar="ORG",
        help="The organisation's id. Default: the key's, or the one chosen with `soundmark use`.",
    ),
]
Project = Annotated[
    str | None,
    typer.Option(
        "--project",
        metavar="PROJECT",
        help="The project's id. Default: the key's, or the one chosen with `soundmark use`.",
    ),
]
ProjectFilter = Annotated[str | None, typer.Option("--project", metavar="PROJECT", help="Show only this project's.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the API's response as one line of JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only ids.")]
NewName = Annotated[str | None, typer.Argument(metavar="[NAME]", help="The new name.")]
NoName = Annotated[bool, typer.Option("--no-name", help="Remove the name.")]


@dataclass(frozen=True, slots=True)
class Connection:
    """The options that name a service and a credential."""

    base_url: BaseUrl = None
    key_file: KeyFile = None
    data_dir: UpDir = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OrganizationCall:
    """The options of a call that is about an organisation."""

    organization: Organization = None
    connection: Connection
    as_json: AsJson = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectCall:
    """The options of a call that is about one project."""

    organization: Organization = None
    project: Project = None
    connection: Connection
    as_json: AsJson = False


@dataclass(frozen=True, slots=True)
class Paging:
    """The options that choose one page of a list."""

    limit: Annotated[int, typer.Option("--limit", min=1, max=100, help="The maximum number to show.")] = 50
    cursor: Annotated[str | None, typer.Option("--cursor", help="Continue where the previous page ended.")] = None


def command(app: typer.Typer, name: str | None = None) -> Callable[[F], F]:
    """Add a function to `app` as a command, as `app.command()` does, and return the function itself.

    A keyword-only parameter may be a dataclass: its fields are options of the command, at the parameter's place,
    and those of a field that is a dataclass in turn.
    """

    def add(function: F) -> F:
        app.command(name)(_spread_records(function))
        return function

    return add


def read_duration(text: str) -> timedelta:
    """Return the duration that an option gives, such as 90m.

    Raises: typer.BadParameter.
    """
    match = _DURATION.fullmatch(text)
    if match is None:
        raise typer.BadParameter("must be a number followed by s, m, h or d, such as 90m")
    return timedelta(**{_UNITS[match[2]]: int(match[1])})


def read_moment(text: str) -> datetime:
    """Return the time that an option gives.

    Raises: typer.BadParameter.
    """
    try:
        return parse_timestamp(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def _spread_records(function: Callable[..., None]) -> Callable[..., None]:
    """Return the function with the fields of its records as parameters of their own."""
    signature = inspect.signature(function)
    every = signature.parameters.items()
    records: dict[str, Any] = {name: each.annotation for name, each in every if is_dataclass(each.annotation)}

    @functools.wraps(function)
    def run(**given: Any) -> None:
        for name, record in records.items():
            given[name] = _gather(record, given)
        function(**given)

    spread = [one for each in signature.parameters.values() for one in _spread(each)]
    run.__signature__ = signature.replace(parameters=spread)  # type: ignore[attr-defined]  # as PEP 362 has it
    run.__annotations__ = {one.name: one.annotation for one in spread}
    return run


def _gather(kind: Any, given: dict[str, Any]) -> Any:
    """Take what a record of options needs out of what was given, and return the record."""
    values = {
        field.name: _gather(field.type, given) if is_dataclass(field.type) else given.pop(field.name)
        for field in fields(kind)
    }
    return kind(**values)


def _spread(parameter: inspect.Parameter) -> Iterator[inspect.Parameter]:
    if not is_dataclass(parameter.annotation):
        yield parameter
        return
    for field in fields(parameter.annotation):
        default = inspect.Parameter.empty if field.default is MISSING else field.default
        yield from _spread(inspect.Parameter(field.name, parameter.kind, default=default, annotation=field.type))
