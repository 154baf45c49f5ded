"""The settings of the transparency log, and the file of its witnesses."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from soundmark.kit.crypto.signed_notes import COSIGNATURE, NotANote, VerifierKey, is_name, parse_verifier_key
from soundmark.kit.settings import Settings
from soundmark.kit.text.validation import check_url
from soundmark.settings.fields import Allowed

_FILE_BYTES_MAX: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class WitnessSettings:
    """One witness: the key that it cosigns with, and the URL below which it takes checkpoints."""

    key: VerifierKey
    url: str


def read_witnesses(file: Path) -> tuple[WitnessSettings, ...]:
    """Return the witnesses that a file lists, one line `vkey url` for each, beside empty lines and `#` comments.

    Raises: ValueError, whose message names the line and what is wrong with it.
    """
    try:
        with file.open("rb") as opened:
            content = opened.read(_FILE_BYTES_MAX + 1)
    except OSError as error:
        raise ValueError(f"cannot be read: {error.strerror}") from None
    if len(content) > _FILE_BYTES_MAX:
        raise ValueError("is larger than 64 KiB")
    found = list[WitnessSettings]()
    for number, line in enumerate(content.decode("utf-8", "replace").splitlines(), start=1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        try:
            found.append(_read_line(words))
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from None
        if any(each.key.public_key == found[-1].key.public_key for each in found[:-1]):
            raise ValueError(f"line {number}: names the key of another line")
    return tuple(found)


def _read_line(words: list[str]) -> WitnessSettings:
    if len(words) != 2:  # noqa: PLR2004 - a key and a URL
        raise ValueError("is not a vkey, a space and a URL")
    try:
        key = parse_verifier_key(words[0], types=(COSIGNATURE,))
    except NotANote as error:
        raise ValueError(f"its key {error}") from None
    return WitnessSettings(key, check_url(words[1], "secure").rstrip("/"))


def _witnesses_file(file: Path) -> Path:
    if not file.is_absolute():
        raise ValueError("must be an absolute path")
    read_witnesses(file)
    return file


def _origin(text: str) -> str:
    if not is_name(text):
        raise ValueError("must be 1 to 255 characters without spaces and plus signs")
    return text


WitnessesFile = Annotated[
    Path,
    AfterValidator(_witnesses_file),
    Allowed("the absolute path of a file with a line `vkey url` for each witness"),
]
LogOrigin = Annotated[
    str, AfterValidator(_origin), Allowed("1 to 255 characters without spaces and plus signs, as a URL without scheme")
]


class TransparencySettings(Settings):
    """Settings of every process that makes the log or asks its witnesses. The origin counts once, when it is made."""

    transparency_origin: LogOrigin | None = None
    transparency_witnesses: WitnessesFile | None = None
    transparency_quorum: Annotated[int, Field(ge=0)] = 0

    @field_validator("transparency_quorum")
    @classmethod
    def _require_enough_witnesses(cls, quorum: int, info: ValidationInfo) -> int:
        file = info.data.get("transparency_witnesses", ...)  # Missing if the file is wrong, which is reported itself.
        if file is not ... and quorum > (0 if file is None else len(read_witnesses(file))):
            raise ValueError("is more than the witnesses in SOUNDMARK_TRANSPARENCY_WITNESSES")
        return quorum
