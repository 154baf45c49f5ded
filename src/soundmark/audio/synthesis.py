"""Synthesise the sound of a broadcast frame. This is the only place that makes sound.

A sound is a start marker, 13 groups of six tones, and an end marker. A group carries three bytes, one tone for each
nibble, the low one first; its six tones come from six bands of 16. Any ggwave receiver decodes it. ggwave itself plays
other phases, weaker markers and linear fades: docs/adr/0045-one-synthesiser.md.

All samples are computed in integers, in steps of 2^-23 of full scale, so every machine makes the same bytes.
"""

import hashlib
import io
import math
import re
import wave
from functools import lru_cache
from typing import Final, get_args

import numpy as np
from numpy.typing import NDArray

from soundmark.audio.reed_solomon import check_bytes
from soundmark.wire.private.audio import Protocol

FRAME_PATTERN: Final = r"XRC1:brd_[A-Za-z0-9_-]{16}"  # Contract, section 1.
PROTOCOLS: Final[tuple[Protocol, ...]] = get_args(Protocol)
SAMPLE_RATE_HZ: Final = 48_000

_FRAME: Final = re.compile(FRAME_PATTERN)
_BLOCK: Final = 1024  # Samples. Every tone repeats after a block.
_GROUP_BLOCKS: Final[dict[Protocol, int]] = {3: 9, 4: 6, 5: 3}
_MARKER_BLOCKS: Final = 16
_GROUP_BYTES: Final = 3
_NIBBLE_TONES: Final = 16
_TONES: Final = 96
_FIRST_CYCLES: Final = 320  # In a block, of the lowest tone: 15 kHz.
_FADE: Final = 0.15  # Of a group or a marker, at either end.
_LENGTH_CHECKS: Final = 2
_CHECKS: Final = 10

_FULL_SCALE: Final = 1 << 23
_SAMPLE_STEPS: Final = 1 << 8  # In a step of 16 bits.
_FADE_BITS: Final = 30
# Half of full scale for the six tones of a group together. Loudspeakers roll off in this band, so the sound should be
# strong. The other half is headroom: the sound is meant to be mixed with speech or music, and an amplifier at its limit
# makes audible difference tones.
_DATA_AMPLITUDE: Final = 0.5 / 6
# ggwave's markers are 7 dB weaker, and a receiver loses them in noise long before it loses the data. With quadratic
# phases the sixteen tones together still stay below half of full scale.
_MARKER_AMPLITUDE: Final = 0.07


def synthesise(frame: str, protocol: Protocol) -> NDArray[np.float32]:
    """Return the sound of a frame: mono, 48 kHz, at most half of full scale (1.0), not dithered.

    The shape is (152576,), (112640,) or (72704,) for protocol 3, 4 or 5. Each call returns a new array.

    Raises: ValueError for a text that is not a frame, and for a protocol other than 3, 4 and 5.
    """
    return _steps(frame, protocol).astype(np.float32) * np.float32(1 / _FULL_SCALE)


def render_wav(frame: str, protocol: Protocol) -> bytes:
    """Return the sound of a frame as a WAV file: mono, 48 kHz, 16 bits, dithered; the same bytes every time.

    Raises: ValueError as `synthesise` does.
    """
    steps = _steps(frame, protocol)
    steps += _dither()[: len(steps)]
    steps >>= _SAMPLE_STEPS.bit_length() - 1
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(SAMPLE_RATE_HZ)
        writer.writeframes(steps.astype("<i2").tobytes())
    return file.getvalue()


def _steps(frame: str, protocol: Protocol) -> NDArray[np.int32]:
    if _FRAME.fullmatch(frame) is None:
        raise ValueError("not a broadcast frame")
    if protocol not in PROTOCOLS:
        raise ValueError("not an ultrasound protocol")
    start, end = _markers()
    return np.concatenate((start, _groups(_tones(_sent_bytes(frame.encode())), _GROUP_BLOCKS[protocol]), end))


def _sent_bytes(payload: bytes) -> bytes:
    length = bytes([len(payload)])
    sent = length + check_bytes(length, _LENGTH_CHECKS) + payload + check_bytes(payload, _CHECKS)
    return sent + bytes(-len(sent) % _GROUP_BYTES)


def _tones(sent: bytes) -> NDArray[np.intp]:
    """Return the tones of each group, of shape (groups, 6)."""
    data = np.frombuffer(sent, np.uint8)
    nibbles = np.stack((data & 0x0F, data >> 4), axis=1).reshape(-1, 2 * _GROUP_BYTES)
    return nibbles + _NIBBLE_TONES * np.arange(2 * _GROUP_BYTES)


def _groups(tones: NDArray[np.intp], blocks: int) -> NDArray[np.int32]:
    one_block = _data_carriers()[tones].sum(axis=1, dtype=np.int32)
    groups = np.tile(one_block, blocks)
    _fade(groups)
    return groups.reshape(-1)


@lru_cache(maxsize=1)
def _markers() -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the start marker and the end marker: one tone of each pair of neighbours, and the other one."""
    pairs = np.arange(_MARKER_BLOCKS)
    carriers = _carriers(2 * _MARKER_BLOCKS, _MARKER_AMPLITUDE)
    tones = np.stack((2 * pairs + pairs % 2, 2 * pairs + 1 - pairs % 2))
    markers = np.tile(carriers[tones].sum(axis=1, dtype=np.int32), _MARKER_BLOCKS)
    _fade(markers)
    return markers[0], markers[1]


@lru_cache(maxsize=1)
def _data_carriers() -> NDArray[np.int32]:
    return _carriers(_TONES, _DATA_AMPLITUDE)


def _carriers(tones: int, amplitude: float) -> NDArray[np.int32]:
    """Return one block of each of the lowest tones. Their phases grow quadratically, so that their peaks spread."""
    one_turn = [round(amplitude * _FULL_SCALE * math.sin(2 * math.pi * step / _BLOCK)) for step in range(_BLOCK)]
    tone = np.arange(tones)[:, np.newaxis]
    phase = 32 * (tone // 2) ** 2  # In 1024ths of a turn: pi * (tone // 2)^2 / 16.
    steps = np.array(one_turn, np.int32)
    return np.take(steps, ((_FIRST_CYCLES + tone) * np.arange(_BLOCK) + phase) % _BLOCK)


def _fade(segments: NDArray[np.int32]) -> None:
    """Fade each row in and out by half a cosine, in place."""
    ramp = _ramp(int(_FADE * segments.shape[1]))
    for part, factor in ((segments[:, : len(ramp)], ramp), (segments[:, -len(ramp) :], ramp[::-1])):
        part[:] = (part * factor + (1 << _FADE_BITS - 1)) >> _FADE_BITS


@lru_cache(maxsize=len(PROTOCOLS) + 1)
def _ramp(length: int) -> NDArray[np.int64]:
    factors = [
        round((1 << _FADE_BITS) * math.sin(math.pi * (place + 0.5) / (2 * length)) ** 2) for place in range(length)
    ]
    return np.array(factors, np.int64)


@lru_cache(maxsize=1)
def _dither() -> NDArray[np.int16]:
    """Return what is added before a sample is cut to 16 bits: half a step to round, and triangular noise of two steps.

    The noise is a fixed sequence. It makes the rounding errors independent of the signal, so that they are not heard as
    tones.
    """
    longest = _BLOCK * (2 * _MARKER_BLOCKS + 13 * max(_GROUP_BLOCKS.values()))
    noise = np.frombuffer(hashlib.shake_256(b"soundmark dither").digest(2 * longest), np.uint8).astype(np.int16)
    return noise[:longest] - noise[longest:] + _SAMPLE_STEPS // 2
