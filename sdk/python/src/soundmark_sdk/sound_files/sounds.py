"""Decode the sounds of a recording, one after the other."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Final

import numpy as np
import soundfile

from soundmark_sdk.resampling import Samples
from soundmark_sdk.sound_files.decoder_notes import drop_decoder_notes
from soundmark_sdk.sound_files.flac import MAGIC, cut_before, find_frame
from soundmark_sdk.sound_files.part import Part

# libsndfile reads many more formats. The fewer parsers an untrusted file can reach, the better.
_PCM: Final = frozenset({"PCM_U8", "PCM_16", "PCM_24", "PCM_32", "FLOAT", "DOUBLE"})
SUBTYPES: Final = {
    "WAV": _PCM,
    "WAVEX": _PCM,
    "RF64": _PCM,
    "FLAC": frozenset({"PCM_S8", "PCM_16", "PCM_24"}),
    "OGG": frozenset({"VORBIS", "OPUS"}),
    "MP3": frozenset({"MPEG_LAYER_II", "MPEG_LAYER_III"}),
}
# libsndfile decodes FLAC no further than to its first damage, and discards the block that it was to read then.
_FLAC_BLOCK_SAMPLES: Final = 4096
_RESUMED_MAX: Final = 64  # Of one part.
# What is missing is silence, so that a Code around it keeps its time. A frame may claim any.
_MISSING_S_MAX: Final = 60
# Read at once: libsndfile fills what is missing of a block with zeros, so a block costs its memory even without sound.
_BLOCK_VALUES: Final = 1 << 20


class _Decoder(soundfile.SoundFile):  # type: ignore[misc]  # soundfile has no types
    """A decoder that is read from the first sample to the last, and never seeks: some files cannot."""

    def seekable(self) -> bool:
        return False


class SoundReader:
    """The sounds of a recording, to be read in order, and what could not be read.

    `obstacles` are the reasons why parts cannot be decoded, and `damage` names what is damaged in the others. Both grow
    while the sounds are read.
    """

    def __init__(self, parts: Iterator[Part]) -> None:
        self.obstacles: Final[list[str]] = []
        self.damage: Final[list[str]] = []
        self._parts: Final = parts
        self._part: Part | None = None
        self._decoder: _Decoder | None = None
        self._read_count = 0
        self._is_damaged = False
        # Of a damaged FLAC file: how often it was resumed, where, what was missing, and is to be read as silence.
        self._resumed_count = self._resumed_at = self._missing_count = self._silent_count = 0

    def read_sounds(self) -> Iterator["Sound"]:
        """Yield each sound; what the caller does not read of it is passed over."""
        self._open_next()
        while self._decoder is not None:
            sound = Sound(self, self._decoder.samplerate, self._decoder.channels)
            yield sound
            while self.has_more(sound):
                self._open_next()

    def has_more(self, sound: "Sound") -> bool:
        """Return whether the part that comes next belongs to a sound: whether it has the same format."""
        decoder = self._decoder
        return decoder is not None and (decoder.samplerate, decoder.channels) == (sound.sample_rate, sound.channels)

    def decode(self, count: int) -> Samples:
        """Return up to so many samples of the current part; none where it ends, and then the next part is current."""
        assert self._decoder is not None, "there is a part to decode"
        count = min(count, -(-_BLOCK_VALUES // self._decoder.channels))
        if self._silent_count:
            count = min(count, self._silent_count)
            self._silent_count -= count
            return np.zeros((count, self._decoder.channels), np.float32)
        if self._decoder.format == "FLAC":
            count = min(count, _FLAC_BLOCK_SAMPLES, self._count_claimed_rest() or count)
        try:
            with _keep_quiet(self._decoder.format):
                samples: Samples = self._decoder.read(count, dtype="float32", always_2d=True)
        except soundfile.LibsndfileError:
            self._is_damaged = True
            samples = np.zeros((0, self._decoder.channels), np.float32)
        self._read_count += len(samples)
        if not len(samples) and not self._resume():
            self._open_next()
        return samples

    def _resume(self) -> bool:
        """Go on after damage in FLAC, at the next frame; return whether there is one."""
        content = self._part.content if self._part is not None else None
        assert self._part is not None, "there is a part to decode"
        assert content is not None, "it has content"
        is_whole = self._part.sample_count is not None and self._read_count >= self._part.sample_count
        is_flac = content.header.startswith(MAGIC)
        if not (self._is_damaged and is_flac) or is_whole or self._resumed_count == _RESUMED_MAX:
            return False
        found = find_frame(content, self._resumed_at + 1, self._read_count)
        if found is None or found[1] >= (self._part.sample_count or found[1] + 1):
            return False
        self._resumed_at, first = found
        decoder = self._open(replace(self._part, content=cut_before(content, self._resumed_at), damage=""))
        if decoder is None:
            return False
        self.close()
        self._decoder, self._is_damaged = decoder, False
        self._resumed_count += 1
        missing_count = first - self._read_count
        self._silent_count = missing_count if missing_count <= _MISSING_S_MAX * decoder.samplerate else 0
        self._missing_count += missing_count
        self._read_count = first
        return True

    def close(self) -> None:
        """Close the decoder; closing again does nothing."""
        if self._decoder is not None:
            self._decoder.close()
            self._decoder = None

    def _open_next(self) -> None:
        if self._part is not None and self._decoder is not None:
            self._check_damage(self._part)
        self.close()
        self._read_count, self._is_damaged = 0, False
        self._resumed_count = self._resumed_at = self._missing_count = self._silent_count = 0
        for part in self._parts:
            self._part, self._decoder = part, self._open(part)
            if self._decoder is not None:
                return

    def _count_claimed_rest(self) -> int:
        """Return how many samples should follow, 0 if that is unknown. What follows the last one may be no sound."""
        claimed = self._part.sample_count if self._part is not None else None
        return max(0, (claimed or 0) - self._read_count)

    def _check_damage(self, part: Part) -> None:
        """Note that samples were lost. An error alone is none: what follows the last sample may be no sound."""
        count = "" if part.sample_count is None else f" of {part.sample_count}"
        if self._missing_count:
            self.damage.append(f"The {part.kind} file is damaged: {self._missing_count}{count} samples are missing.")
        if self._is_damaged and part.sample_count != self._read_count:
            self.damage.append(f"The {part.kind} file is damaged after {self._read_count}{count} samples.")

    def _open(self, part: Part) -> _Decoder | None:
        if part.content is None:
            self.obstacles.append(part.obstacle)
            return None
        if part.codec not in _list_codecs():
            self.obstacles.append(f"The installed libsndfile cannot read {part.codec}; version 1.1 or later can.")
            return None
        try:
            with _keep_quiet(part.kind):
                decoder = _Decoder(part.content)
        except soundfile.LibsndfileError:
            self.obstacles.append(part.obstacle or f"The {part.kind} file is broken.")
            return None
        if decoder.samplerate >= 1 and decoder.subtype in SUBTYPES.get(decoder.format, ()):
            self.damage.extend([part.damage] if part.damage else [])
            return decoder
        encoding = f"{decoder.format}, {decoder.subtype}"
        decoder.close()
        self.obstacles.append(f"The {part.kind} file has an encoding that cannot be read ({encoding}).")
        return None


class Sound:
    """A sound of one format: `sample_rate` in Hz, and the number of `channels`."""

    def __init__(self, reader: SoundReader, sample_rate: int, channels: int) -> None:
        self.sample_rate: Final = sample_rate
        self.channels: Final = channels
        self._reader: Final = reader

    def read(self, count: int) -> Samples:
        """Return the next samples, of shape (samples, channels); fewer than `count` only at the end."""
        blocks = [np.zeros((0, self.channels), np.float32)]
        while count > 0 and self._reader.has_more(self):
            blocks.append(self._reader.decode(count))
            count -= len(blocks[-1])
        return np.concatenate(blocks)


def _list_codecs() -> set[str]:
    """Return what this libsndfile decodes, of what older ones do not."""
    has_mp3 = "MP3" in soundfile.available_formats()
    has_opus = "OPUS" in soundfile.available_subtypes("OGG")
    return {"", *(["MP3"] if has_mp3 else []), *(["Opus"] if has_opus else [])}


def _keep_quiet(form: str) -> AbstractContextManager[None]:
    return drop_decoder_notes() if form == "MP3" else nullcontext()
