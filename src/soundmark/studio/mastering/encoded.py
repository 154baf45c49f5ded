"""A master that is scanned like any other, but into which nothing can be mixed.

MP3 and Ogg would have to be encoded twice. A WAV or FLAC file may state a wrong length or none, or be in pieces.
"""

from contextlib import AbstractContextManager, closing, nullcontext
from typing import BinaryIO, Final

import numpy as np
import soundfile
from soundmark_sdk.sound_files import flac
from soundmark_sdk.sound_files.byte_source import ByteSource
from soundmark_sdk.sound_files.decoder_notes import drop_decoder_notes
from soundmark_sdk.sound_files.part import Part
from soundmark_sdk.sound_files.parts import find_parts, name_kind
from soundmark_sdk.sound_files.sounds import SUBTYPES, SoundReader

from soundmark.studio.mastering.wav_layout import NotReadable

# Samples after a jump until a decoder has what the samples before have left it. The longest window of Vorbis has 8192.
_SETTLES_AFTER: Final = 8192
_BLOCK: Final = 1 << 16


class EncodedSound:
    """The only sound of a file, read from any place."""

    def __init__(self, file: BinaryIO) -> None:
        """Raises: NotReadable; OSError."""
        file.seek(0)
        source = ByteSource(file)
        parts = list(find_parts(source))
        if not source.size:
            raise NotReadable("it is empty")
        if not parts:
            raise NotReadable(f"it is {name_kind(source) or 'no WAV, BW64, RF64, FLAC, OGG or MP3 file'}")
        if len(parts) > 1:
            raise NotReadable(f"it has {len(parts)} sounds, as files that were joined have; scan each by itself")
        if parts[0].content is None:
            raise NotReadable(parts[0].obstacle)
        self.kind: Final = parts[0].kind
        if parts[0].content.header.startswith(flac.MAGIC):
            flac.write_length(parts[0].content, parts[0].sample_count or _count_samples(parts[0]))
            parts[0].content.seek(0)
        try:
            with self._keep_quiet():
                self._sound: Final = soundfile.SoundFile(parts[0].content)
        except soundfile.LibsndfileError:
            raise NotReadable(f"the {self.kind} file is broken") from None
        if self._sound.subtype not in SUBTYPES.get(self._sound.format, ()):
            raise NotReadable(f"its encoding is not read ({self._sound.format}, {self._sound.subtype})")
        self.sample_rate: Final[int] = self._sound.samplerate
        self.channel_count: Final[int] = self._sound.channels
        self.sample_count: Final[int] = self._sound.frames

    def read(self, start: int, count: int) -> bytes:
        """Return up to `count` samples of each channel from `start` on, as 32-bit floats.

        Raises: NotReadable.
        """
        try:
            with self._keep_quiet():
                before = 0
                if self._sound.tell() != start:
                    before = min(start, _SETTLES_AFTER)
                    self._sound.seek(start - before)
                samples = self._sound.read(before + count, dtype="float32", always_2d=True)[before:]
        except soundfile.LibsndfileError:
            raise NotReadable(f"the {self.kind} file is damaged or cut off") from None
        return np.ascontiguousarray(samples).tobytes()

    def _keep_quiet(self) -> AbstractContextManager[None]:
        return drop_decoder_notes() if self.kind == "MP3" else nullcontext()


def _count_samples(part: Part) -> int:
    """Return how many samples a FLAC stream has, which it may not say itself.

    Raises: NotReadable if it is damaged.
    """
    reader, count = SoundReader(iter([part])), 0
    with closing(reader):
        for sound in reader.read_sounds():
            while block := len(sound.read(_BLOCK)):
                count += block
    if reader.obstacles or reader.damage:
        raise NotReadable((reader.obstacles + reader.damage)[0])
    return count
