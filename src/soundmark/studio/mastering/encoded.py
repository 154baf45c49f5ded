"""A master in MP3 or Ogg: it is scanned like any other, and nothing can be mixed into it without a second encoding."""

from contextlib import AbstractContextManager, nullcontext
from typing import BinaryIO, Final

import numpy as np
import soundfile
from soundmark_sdk.sound_files.byte_source import ByteSource
from soundmark_sdk.sound_files.decoder_notes import drop_decoder_notes
from soundmark_sdk.sound_files.parts import find_parts, name_kind

from soundmark.studio.mastering.wav_layout import NotReadable

_SUBTYPES: Final = {
    "FLAC": frozenset({"PCM_S8", "PCM_16", "PCM_24"}),  # Of Ogg FLAC.
    "OGG": frozenset({"VORBIS", "OPUS"}),
    "MP3": frozenset({"MPEG_LAYER_II", "MPEG_LAYER_III"}),
}
# Samples after a jump until a decoder has what the samples before have left it. The longest window of Vorbis has 8192.
_SETTLES_AFTER: Final = 8192


class EncodedSound:
    """The only sound of an MP3 or Ogg file, read from any place."""

    def __init__(self, file: BinaryIO) -> None:
        """Raises: NotReadable; OSError."""
        file.seek(0)
        source = ByteSource(file)
        parts = list(find_parts(source))
        if not parts:
            raise NotReadable(f"it is {name_kind(source.read(0, 12)) or 'no WAV, BW64, RF64, FLAC, OGG or MP3 file'}")
        if len(parts) > 1:
            raise NotReadable(f"it is {len(parts)} files that were joined; scan each by itself")
        if parts[0].content is None:
            raise NotReadable(parts[0].obstacle)
        self.kind: Final = parts[0].kind
        try:
            with self._keep_quiet():
                self._sound: Final = soundfile.SoundFile(parts[0].content)
        except soundfile.LibsndfileError:
            raise NotReadable(f"the {self.kind} file is broken") from None
        if self._sound.subtype not in _SUBTYPES.get(self._sound.format, ()):
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
            raise NotReadable(f"the {self.kind} file is broken") from None
        return np.ascontiguousarray(samples).tobytes()

    def _keep_quiet(self) -> AbstractContextManager[None]:
        return drop_decoder_notes() if self.kind == "MP3" else nullcontext()
