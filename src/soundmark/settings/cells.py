"""The file of cells: each Audience of a deployment, and how Core calls it."""

from pathlib import Path
from typing import Annotated, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from soundmark.kit.settings import error_message
from soundmark.settings.fields import Allowed, Credentials, HttpUrl

MAIN_CELL: Final = "main"  # The cell of everything that was made while `AUDIENCE_URL` was set.
CELL_NAME_PATTERN: Final = "^[a-z0-9-]{1,40}$"
_FILE_BYTES_MAX: Final = 1024 * 1024


class CellSettings(BaseModel):
    """One cell. `takes_new` is whether organisations may be given it by Core's own choice."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True, arbitrary_types_allowed=True)

    name: Annotated[str, Field(pattern=CELL_NAME_PATTERN)]
    url: HttpUrl
    credential: Credentials
    takes_new: Annotated[bool, Field(strict=True)]


_CELLS: Final = TypeAdapter(Annotated[list[CellSettings], Field(min_length=1)])


def read_cells(file: Path) -> list[CellSettings]:
    """Return the cells that `file` lists.

    Raises: ValueError, whose message names what is wrong without repeating any value.
    """
    try:
        with file.open("rb") as opened:
            content = opened.read(_FILE_BYTES_MAX + 1)
    except OSError as error:
        raise ValueError(f"cannot be read: {error.strerror}") from None
    if len(content) > _FILE_BYTES_MAX:
        raise ValueError("is larger than 1 MiB")
    try:
        cells = _CELLS.validate_json(content)
    except ValidationError as invalid:
        raise ValueError(_describe(invalid)) from None
    for member in ("name", "url"):
        if len({getattr(cell, member) for cell in cells}) < len(cells):
            raise ValueError(f"two cells have the same {member}")
    return cells


def find_version(file: Path) -> object:
    """Return what differs after every change of `file`, replaced or rewritten.

    Raises: ValueError if there is no such file.
    """
    try:
        found = file.stat()
    except OSError as error:
        raise ValueError(f"cannot be read: {error.strerror}") from None
    return found.st_ino, found.st_mtime_ns, found.st_size


def _describe(invalid: ValidationError) -> str:
    first = invalid.errors(include_input=False)[0]
    place = [f"cell {part + 1}" if isinstance(part, int) else part for part in first["loc"]]
    return ": ".join([*place, error_message(first["msg"])])


def _cells_file(file: Path) -> Path:
    if not file.is_absolute():
        raise ValueError("must be an absolute path")
    read_cells(file)
    return file


CellsFile = Annotated[Path, AfterValidator(_cells_file), Allowed("the absolute path of a JSON file with cells")]
