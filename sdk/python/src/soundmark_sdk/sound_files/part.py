"""What the readers of the formats find."""

import re
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from soundmark_sdk.sound_files.byte_source import ByteView

# How files of the kinds that are read begin: signatures that are too long to occur by chance. MP3 without a tag has
# none.
STARTS: Final = re.compile(
    rb"OggS\0[\2\6]|fLaC[\0\x80]\0\0\x22|(?:RIFF|RIFX|RF64|BW64)[\0-\xff]{4}WAVE|ID3[\2-\4]\0[\0-\xf0][\0-\x7f]{4}"
)
# A stream may begin in the middle of a frame, or of a picture in a tag.
SEARCHED_BYTES: Final = 1 << 16

Kind: TypeAlias = Literal["WAV", "FLAC", "OGG", "MP3"]


@dataclass(frozen=True, slots=True)
class Part:
    """One sound in a file: bytes that libsndfile decodes, or the reason why they cannot be decoded.

    With bytes, `obstacle` is the reason if libsndfile refuses them; without one, the file is broken.
    `sample_count` is the number of samples that the part itself claims, or None. `codec` is the name of a codec that an
    old libsndfile lacks. `damage` says what of the content is damaged, and is passed over without an error.
    """

    kind: Kind
    content: ByteView | None
    obstacle: str = ""
    sample_count: int | None = None
    codec: Literal["", "MP3", "Opus"] = ""
    damage: str = ""


def make_broken_part(kind: Kind) -> Part:
    """Return a part whose header makes no sense."""
    return Part(kind, None, f"The {kind} file is broken.")


def make_unreadable_part(kind: Kind, encoding: str) -> Part:
    """Return a part that is intact, but has an encoding that is not read."""
    return Part(kind, None, f"The {kind} file has an encoding that cannot be read ({encoding}).")
