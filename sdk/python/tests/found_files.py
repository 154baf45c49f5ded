"""Sound files as recorders, streams and editors leave them, made from short sounds."""

import io
from typing import Any, Final

import numpy as np
from soundmark_sdk import hear

from .recordings import (
    make_ape_tag,
    make_chunk,
    make_form,
    make_ogg,
    make_ogg_flac,
    make_riff,
    make_samples,
    make_sizes,
    make_tag,
    move_positions,
    set_flac_length,
    write_recording,
)
from .sound import RATE_HZ, TOKENS, Sound, frame, play, resample

ONE, TWO = TOKENS[:2]
UNKNOWN: Final = 0xFFFF_FFFF


def hear_tokens(content: bytes) -> list[str]:
    return [each.token for each in hear(io.BytesIO(content))]


def play_quietly(token: str, channels: int = 1) -> Sound:
    sound = play(frame(token), 5)
    return np.tile(sound[:, np.newaxis], channels) if channels > 1 else sound


def make_noise(duration_s: float) -> Sound:
    return np.random.default_rng(0).normal(0, 0.02, int(duration_s * RATE_HZ))


def write_flac(sound: Sound) -> bytes:
    return write_recording(sound, "FLAC", "PCM_16")


def write_mp3(sound: Sound, rate_hz: int = RATE_HZ, **kind: Any) -> bytes:
    return write_recording(sound, "MP3", "MPEG_LAYER_III", rate_hz, **kind)


def write_vorbis(sound: Sound, rate_hz: int = RATE_HZ) -> bytes:
    return write_recording(sound, "OGG", "VORBIS", rate_hz)


def write_opus(sound: Sound) -> bytes:
    return write_recording(sound, "OGG", "OPUS")


OGG_WRITERS: Final = (write_vorbis, write_opus)
Made = dict[str, bytes]


def make_wav_files() -> Made:
    """One Code in each, whatever its header says."""
    sound = play_quietly(ONE)
    data, form = make_samples(sound), make_form()
    deep, wide = make_samples(sound, 24), play_quietly(ONE, 17)
    floats = sound.astype("<f4").tobytes()
    broadcast = make_chunk(b"bext", bytes(602))
    odd = make_chunk(b"LIST", b"INFOx")
    names = make_chunk(b"chna", bytes(4)) + make_chunk(b"axml", b"<a/>")
    silence = bytes(2 * len(data))
    return {
        **{
            f"data size {size:#x}, RIFF size {riff_size:#x}": make_riff(
                form, make_chunk(b"data", data, size), size=riff_size
            )
            for size, riff_size in [
                *((0, 36), (0, 0), (UNKNOWN, UNKNOWN), (0x7FFF_FFFF, 0x7FFF_FFFF), (0x8000_0000, 0)),
                *((0x7FFF_F000, 0x7FFF_F024), (len(data), 0), (len(data) - 1, 1), (len(data) + 1, 36), (8000, 8036)),
            ]
        },
        "24 bits, size 0": make_riff(make_form(bits=24), make_chunk(b"data", deep, 0)),
        "24 bits, cut in a sample": make_riff(make_form(bits=24), make_chunk(b"data", deep[:-7], len(deep))),
        "24 bits, size 0, cut in a sample": make_riff(make_form(bits=24), make_chunk(b"data", deep[:-7], 0)),
        "32 bits, size 0": make_riff(make_form(bits=32), make_chunk(b"data", make_samples(sound, 32), 0)),
        "floats, size 0": make_riff(make_form(bits=32, kind=3), make_chunk(b"data", floats, 0)),
        "17 channels, size 0": make_riff(make_form(channels=17), make_chunk(b"data", make_samples(wide), 0)),
        "big endian, size 0": make_riff(
            make_form(order=">"),
            make_chunk(b"data", np.frombuffer(data, "<i2").astype(">i2").tobytes(), 0),
            magic=b"RIFX",
        ),
        "chunks before, size 0": make_riff(broadcast, odd + b"\0", form, make_chunk(b"data", data, 0)),
        "an odd chunk without padding": make_riff(odd, form, make_chunk(b"data", data)),
        "the format after the data": make_riff(make_chunk(b"data", data), form),
        "a chunk without a name": make_riff(make_chunk(bytes(4), bytes(20)), form, make_chunk(b"data", data)),
        "a chunk with an odd name": make_riff(form, make_chunk(b"n\xc3\xa9 ", bytes(20)), make_chunk(b"data", data)),
        "zeros between chunks": make_riff(form, bytes(490), make_chunk(b"data", data)),
        "data in two chunks": make_riff(form, make_chunk(b"data", data[:9000]), make_chunk(b"data", data[9000:])),
        "no data in the first chunk": make_riff(form, make_chunk(b"data", b""), make_chunk(b"data", data)),
        "a list of data": make_riff(
            form, make_chunk(b"LIST", b"wavl" + make_chunk(b"data", data[:9000]) + make_chunk(b"data", data[9000:]))
        ),
        "silence first, size 0": make_riff(form, make_chunk(b"data", silence + data, 0)),
        "chunks after": make_riff(form, make_chunk(b"data", data), odd, b"\0", make_chunk(b"id3 ", make_tag(bytes(9)))),
        "a tag before": make_tag(bytes(300)) + make_riff(form, make_chunk(b"data", data, 0)),
        "RF64": make_riff(make_sizes(len(data)), form, make_chunk(b"data", data, UNKNOWN), magic=b"RF64", size=UNKNOWN),
        "RF64 without sizes": make_riff(form, make_chunk(b"data", data, UNKNOWN), magic=b"RF64", size=UNKNOWN),
        "RF64 of a short file": make_riff(make_sizes(0), form, make_chunk(b"data", data), magic=b"RF64"),
        "RF64, too long": make_riff(make_sizes(1 << 40), form, make_chunk(b"data", data, UNKNOWN), magic=b"RF64"),
        "RF64, too short": make_riff(make_sizes(99), form, make_chunk(b"data", data, UNKNOWN), magic=b"RF64"),
        "RF64, size 0": make_riff(make_sizes(0), form, make_chunk(b"data", data, UNKNOWN), magic=b"RF64"),
        "BW64": make_riff(
            make_sizes(len(data)), form, names, make_chunk(b"data", data, UNKNOWN), magic=b"BW64", size=UNKNOWN
        ),
        "BW64, names after": make_riff(
            make_sizes(len(data)), form, make_chunk(b"data", data, UNKNOWN), names, magic=b"BW64"
        ),
        "BW64 with a placeholder": make_riff(
            make_chunk(b"JUNK", bytes(28)), form, make_chunk(b"data", data), magic=b"BW64"
        ),
    }


def make_flac_files() -> Made:
    """One Code in each."""
    content = write_flac(play_quietly(ONE))
    count = len(play_quietly(ONE))
    ogg = make_ogg_flac(content)
    later = write_flac(np.concatenate([make_noise(3), play_quietly(ONE)]))
    late = bytearray(make_ogg_flac(write_flac(np.concatenate([make_noise(1), play_quietly(ONE)]))))
    late[9000] ^= 1
    return {
        "of unknown length": set_flac_length(content, 0),
        "longer than it says": set_flac_length(content, 5000),
        "shorter than it says": set_flac_length(content, 10**6),
        "a tag before": make_tag(bytes(3000)) + set_flac_length(content, 0),
        "a tag after": content + b"TAG" + bytes(125),
        "no sound after": content + b"no sound" * 100,
        "cut": write_flac(np.concatenate([play_quietly(ONE), make_noise(1)]))[: len(content) + 5000],
        "damaged before": later[:50_000] + b"damage" + later[50_006:],
        "damaged before, of unknown length": set_flac_length(later[:50_000] + b"damage" + later[50_006:], 0),
        "bytes are missing": later[:50_000] + later[70_000:],
        "damaged in the Code": b"damage".join([content[: len(content) // 2], content[len(content) // 2 + 6 :]]),
        "Ogg": ogg,
        "Ogg, of unknown length": make_ogg_flac(set_flac_length(content, 0)),
        "Ogg, of wrong length": make_ogg_flac(set_flac_length(content, count // 9)),
        "Ogg, damaged before": bytes(late),
        "Ogg, joined": make_ogg_flac(write_flac(make_noise(0.3))) + make_ogg_flac(content, serial=7),
        "Ogg, the same stream twice": make_ogg_flac(write_flac(make_noise(0.3))) + ogg,
    }


def make_ogg_files() -> Made:
    """One Code in each."""
    noise, content = write_vorbis(make_noise(0.5)), write_vorbis(play_quietly(ONE))
    sound = np.concatenate([make_noise(0.5), play_quietly(ONE), make_noise(1)])
    other_rate = write_vorbis(resample(play_quietly(ONE), 44_100), 44_100)
    text = b"".join(make_ogg([b"fishead\0" + bytes(56), b"text" * 9, b""], serial=99))
    first_page = content.index(b"OggS", 4)
    index_page = text.index(b"OggS", 4)
    late = content[content.index(b"OggS", content.index(b"OggS", 4) + 4) :]
    later = np.concatenate([make_noise(4), play_quietly(ONE)])
    return {
        "chained": noise + content,
        "chained, another rate": noise + other_rate,
        "chained, more channels": noise + write_vorbis(play_quietly(ONE, 2)),
        "chained, another encoding": noise + write_opus(play_quietly(ONE)),
        "chained, FLAC": noise + make_ogg_flac(write_flac(play_quietly(ONE))),
        "four links": noise + write_opus(make_noise(0.3)) + noise + content,
        "no sound between": noise + b"no sound" * 99 + content,
        "a link that is cut": noise[: len(noise) * 2 // 3] + content,
        "cut": write_opus(np.concatenate([play_quietly(ONE), make_noise(2)]))[:-9000],
        **{f"joined late, {make.__name__}": move_positions(make(sound), lambda at: at + 10**9) for make in OGG_WRITERS},
        **{
            f"the last position is lost, {make.__name__}": move_positions(
                make(sound), lambda at: at * (at < len(sound))
            )
            for make in OGG_WRITERS
        },
        **{
            f"the time begins anew, {make.__name__}": move_positions(
                make(later), lambda at: at - 143_040 * (at > 143_040)
            )
            for make in OGG_WRITERS
        },
        **{
            f"the time jumps ahead and back, {make.__name__}": move_positions(
                make(later), lambda at: at + 10**12 * (RATE_HZ < at < 3 * RATE_HZ)
            )
            for make in OGG_WRITERS
        },
        "text beside it": text[:index_page] + content[:first_page] + text[index_page:] + content[first_page:],
        "begun in the middle": late[late.index(b"OggS", 4) :] + content,
        "begun in a page": write_vorbis(make_noise(4))[5000:] + content,
        "begun in a page, another encoding": write_opus(make_noise(9))[9000:] + content,
        "a tag before": make_tag(bytes(30)) + content,
    }


def make_mp3_files() -> Made:
    """One Code in each."""
    sound = play_quietly(ONE)
    content, noise = write_mp3(sound), write_mp3(make_noise(0.7))
    start = content.index(b"\xff\xfb", 4)
    middle = start + 4 * 288 - 100
    late = write_mp3(np.concatenate([make_noise(0.5), sound]))
    even = write_mp3(np.concatenate([make_noise(0.5), sound]), bitrate_mode="CONSTANT")
    free = even.replace(even[:3], even[:2] + bytes([even[2] & 0xF]))
    return {
        "from the middle of a frame": late[1500:],
        "of the free format": free,
        "of the free format, from the middle of a frame": free[1500:],
        "zeros before": bytes(100_000) + content,
        "no sound before": b"no sound" * 500 + content,
        "two tags": make_tag(bytes(300)) + make_tag(bytes(200)) + content,
        "a footer": make_tag(bytes(300), has_footer=True) + content,
        "two tags with footers": make_tag(bytes(30), has_footer=True) + make_tag(bytes(9), has_footer=True) + content,
        "an unsynchronised tag": make_tag(b"\xff\0\xfb\x94" * 90, flags=0x80) + content,
        "frames of a picture in a tag": make_tag(content[: start + 2000]) + content,
        "a tag of false length": make_tag(bytes(50), size=1 << 27) + content,
        "zeros after a tag": make_tag(bytes(300)) + bytes(5000) + content,
        "an APE tag": make_ape_tag(bytes(100)) + content,
        "tags of both kinds": make_tag(bytes(9)) + make_ape_tag(bytes(9)) + make_tag(bytes(9)) + content,
        "tags after": content + make_ape_tag(bytes(90)) + b"TAG" + bytes(125),
        "joined": noise + content,
        "joined, a tag between": noise + make_tag(bytes(500)) + content,
        "joined, tags of the end between": noise + b"TAG" + bytes(125) + make_ape_tag(bytes(40)) + content,
        "joined, another rate": noise + write_mp3(resample(sound, 44_100), 44_100),
        "joined, more channels": noise + write_mp3(play_quietly(ONE, 2)),
        "no sound between frames": noise + b"no sound" * 9 + content[start:middle] + b"no sound" * 9 + content[middle:],
        "of variable bit rate": write_mp3(
            np.concatenate([make_noise(1), 0 * make_noise(2), sound]), bitrate_mode="VARIABLE"
        )[start:],
        "without a table of contents": content[start:],
    }


def make_joined_files() -> Made:
    """One Code in each, in the second of two files of different formats."""
    data = make_samples(make_noise(0.6))
    streamed = make_riff(make_form(), make_chunk(b"data", data, UNKNOWN), size=UNKNOWN)
    deep = make_riff(make_form(bits=24), make_chunk(b"data", make_samples(make_noise(0.3), 24), 0))
    sound = play_quietly(ONE)
    wav = make_riff(make_form(), make_chunk(b"data", make_samples(sound)))
    deep_wav = make_riff(make_form(bits=24), make_chunk(b"data", make_samples(sound, 24), UNKNOWN))
    kinds = {"FLAC": write_flac(sound), "OGG": write_vorbis(sound), "MP3": make_tag(bytes(9)) + write_mp3(sound)}
    noises = {
        "FLAC": write_flac(make_noise(0.3)),
        "OGG": write_vorbis(make_noise(0.3)),
        "MP3": write_mp3(make_noise(1)),
    }
    return {
        "WAV, WAV": make_riff(make_form(), make_chunk(b"data", data)) + wav,
        "WAV of unknown size, WAV": streamed + wav,
        "WAV of 24 bits and unknown size, the same": deep + deep_wav,
        **{f"WAV of unknown size, {kind}": streamed + content for kind, content in kinds.items()},
        **{f"{kind}, WAV": noise + wav for kind, noise in noises.items()},
        **{f"{a}, {b}": noises[a] + kinds[b] for a in kinds for b in kinds if a != b},
        "FLAC of unknown length, the same": set_flac_length(noises["FLAC"], 0) + set_flac_length(kinds["FLAC"], 0),
        "FLAC, FLAC": noises["FLAC"] + kinds["FLAC"],
    }
