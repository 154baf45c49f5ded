"""The generator of docs/vectors/sound-*.json: `.venv/bin/python tests/sound_vectors.py` writes the files."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from soundmark_sdk.hearing.decoder import Decoder
from soundmark_sdk.hearing.frame_code import NIBBLES, TONES, find_nibbles
from soundmark_sdk.hearing.likelihoods import find_evidence, find_likelihoods
from soundmark_sdk.hearing.ordered_statistics import decode
from soundmark_sdk.hearing.power_sums import read_frame
from soundmark_sdk.hearing.tone_grid import grid_of

VECTORS: Final = Path(__file__).parents[1] / "docs" / "vectors"
RATE_HZ: Final = 48_000
_BLOCK: Final = 1024
_BLOCKS: Final = {3: 9, 4: 6, 5: 3}
_LEVEL: Final = 0.05  # Of one tone of a group.
_MARKER_BLOCKS: Final = 16
_FADE: Final = 0.15
_NEEDED_BITS: Final = 106.0
_TOKEN: Final = "brd_Zk3-_9aBcD01xYz7"

Json = dict[str, Any]


def files() -> dict[str, str]:
    """Return the text of every published file, by its name."""
    documents = {
        "sound-likelihoods-v1.json": {"cases": [_describe_likelihoods(*each) for each in _SPECTRA]},
        "sound-decoding-v1.json": {"cases": [_describe_decoding(*each) for each in _EVIDENCE]},
        "sound-correction-v1.json": {"cases": _describe_corrections()},
        "sound-hearing-v1.json": {"cases": [_describe_hearing(each) for each in _SOUNDS]},
    }
    return {name: json.dumps(document, separators=(",", ":")) + "\n" for name, document in documents.items()}


def make_noise(count: int, seed: int) -> NDArray[np.float64]:
    """Return noise with deviation 1: sums of 4 numbers of the generator a·1664525 + 1013904223 modulo 2^32."""
    numbers = np.empty(4 * count)
    value = seed
    for place in range(4 * count):
        value = (value * 1664525 + 1013904223) % 2**32
        numbers[place] = value / 2**32
    noise: NDArray[np.float64] = (numbers.reshape(count, 4).sum(axis=1) - 2) * np.sqrt(3)
    return noise


def make_sound(case: Json) -> NDArray[np.float32]:
    """Return the samples that a case of sound-hearing-v1.json describes."""
    total = np.zeros(round(case["duration_s"] * RATE_HZ))
    for frame in case["frames"]:
        _add_frame(total, frame)
    for tone in case["tones"]:
        total += tone["level"] * np.sin(2 * np.pi * tone["hz"] * np.arange(len(total)) / RATE_HZ)
    for start_s, end_s in case["gaps_s"]:
        total[round(start_s * RATE_HZ) : round(end_s * RATE_HZ)] = 0
    if case["noise"]:
        total += case["noise"] * make_noise(len(total), case["seed"])
    return total.astype(np.float32)


def _add_frame(total: NDArray[np.float64], frame: Json) -> None:
    speed = 1 + frame["clock"]
    group = _BLOCKS[frame["protocol"]] * _BLOCK
    marker = _MARKER_BLOCKS * _BLOCK
    pairs = np.arange(16)
    segments = [(0, marker, 2 * pairs + pairs % 2, 6 / 16)]
    for index, nibbles in enumerate(find_nibbles(("XRC1:" + frame["token"]).encode())):
        segments.append((marker + index * group, group, TONES * np.arange(NIBBLES) + nibbles, 1.0))
    segments.append((marker + 13 * group, marker, 2 * pairs + 1 - pairs % 2, 6 / 16))
    start = frame["start_s"] * RATE_HZ
    for begin, length, tones, level in segments:
        first, last = (int(np.ceil(start + each / speed)) for each in (begin, begin + length))
        places = np.arange(max(first, 0), min(last, len(total)))
        time = (places - start) * speed  # In the sender's samples, from the frame's first.
        within = (time - begin) / length
        fade = np.minimum(1, np.minimum(within, 1 - within) / _FADE)
        hertz = 15_000 + 46.875 * tones
        waves = np.sin(2 * np.pi * hertz[:, None] * time / RATE_HZ).sum(axis=0)
        total[places] += frame["level"] * level * fade * waves


# Of each: a name, the protocol, the strength of a tone over the noise, bands that are cut off, an echo, a steady tone.
_SPECTRA: Final = (
    ("at the knee", 4, 4.0, (), 0.0, None),
    ("strong, with an echo, in protocol 5", 5, 300.0, (), 0.3, None),
    ("cut off at 18 kHz, beside a steady tone", 3, 1e5, (4, 5), 0.0, 20),
)


def make_spectra(
    protocol: int, strength: float, dead: tuple[int, ...], echo: float, steady: int | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the powers of a frame's tones and between them, of shape (13, 96), each with four digits."""
    chance = np.random.default_rng([protocol, int(strength)])
    sent = np.zeros((13, NIBBLES, TONES))
    np.put_along_axis(sent, find_nibbles(("XRC1:" + _TOKEN).encode())[:, :, None], 1.0, axis=2)
    sent[:, list(dead)] = 0
    level = strength * sent.reshape(13, -1)
    level[1:] += echo * level[:-1]
    if steady is not None:
        level[:, steady] += 10 * strength
    tones = np.square(np.sqrt(level / 2) + chance.normal(0, np.sqrt(0.5), level.shape))
    tones += np.square(np.sqrt(level / 2) + chance.normal(0, np.sqrt(0.5), level.shape))
    return _round(tones), _round(chance.exponential(1.0, level.shape))


def _describe_likelihoods(
    name: str, protocol: int, strength: float, dead: tuple[int, ...], echo: float, steady: int | None
) -> Json:
    tones, between = make_spectra(protocol, strength, dead, echo, steady)
    likelihoods = find_likelihoods(tones, between, grid_of(protocol))
    evidence, known_bits = find_evidence(likelihoods)
    return {
        "name": name,
        "protocol": protocol,
        "tones": tones.tolist(),
        "between": between.tolist(),
        "likelihoods": _round(likelihoods).tolist(),
        "known_bits": round(known_bits, 2),
        "largest_bits": [round(each, 2) for each in evidence.max(axis=1).tolist()],
    }


_EVIDENCE: Final = (
    ("clear", 4, 30.0, (), 0.0, None),
    ("at the knee", 4, 5.0, (), 0.0, None),
    ("eight bytes missing", 4, 1e5, (4, 5), 0.0, None),
    ("too noisy", 4, 1.0, (), 0.0, None),
)


def _describe_decoding(
    name: str, protocol: int, strength: float, dead: tuple[int, ...], echo: float, steady: int | None
) -> Json:
    spectra = make_spectra(protocol, strength, dead, echo, steady)
    likelihoods = _round(find_likelihoods(*spectra, grid_of(protocol)))
    evidence, known_bits = find_evidence(likelihoods)
    decoded, _ = decode(evidence, enough_bits=_NEEDED_BITS)
    believed = decoded if decoded is not None and decoded.evidence_bits >= _NEEDED_BITS else None
    return {
        "name": name,
        "likelihoods": likelihoods.tolist(),
        "known_bits": round(known_bits, 2),
        "enough_bits": _NEEDED_BITS,
        "token": None if believed is None else f"brd_{believed.token_text}",
        "evidence_bits": None if believed is None else round(believed.evidence_bits, 2),
    }


# Of each: a name, and the wrong bytes of the codeword by their rank, from the least clear to the clearest, 0 to 34.
_CORRECTIONS: Final = (
    ("as it was sent", ()),
    ("five clear bytes wrong", range(30, 35)),
    ("six clear bytes wrong", range(29, 35)),
    ("the eight least clear wrong", range(8)),
    ("the eight least clear wrong, and another of the ten least clear", (*range(8), 9)),
    (
        "the eight least clear wrong, and a clear one, which eight erasures can no longer tell from chance",
        (*range(8), 34),
    ),
    ("the six least clear wrong, and two of the ten least clear", (*range(6), 7, 9)),
    ("the four least clear wrong, and three clear ones", (*range(4), 20, 26, 34)),
)
_OTHER_TEXTS: Final = ("XRC1:brd_Zk3-_9aBcD01xY+7", "XRC1:brc_Zk3-_9aBcD01xYz7")


def _describe_corrections() -> list[Json]:
    others = [_describe_correction(f"a codeword, but no frame: {text}", (), text) for text in _OTHER_TEXTS]
    return [*(_describe_correction(*each) for each in _CORRECTIONS), *others]


def _describe_correction(name: str, wrong_ranks: Iterable[int], text: str = "XRC1:" + _TOKEN) -> Json:
    """Describe half bytes as the second reading finds them, and the token that it reads."""
    values = find_nibbles(text.encode()).ravel()
    ranks = np.arange(35) * 12 % 35  # Of each byte of the codeword, by its place in it.
    clarities = np.full(78, 0.5)
    clarities[6:76] = np.repeat(0.1 + 0.02 * ranks, 2)
    wrong = np.isin(ranks, list(wrong_ranks))
    values[6:76:2][wrong] ^= 5
    values[7:76:2][wrong] ^= 1 + ranks[wrong] % 3
    letters = read_frame(values, clarities)
    return {
        "name": name,
        "values": values.tolist(),
        "clarities": [round(each, 2) for each in clarities.tolist()],
        "token": None if letters is None else f"brd_{letters}",
    }


def _frame(protocol: int, start_s: float = 0.3, clock: float = 0.0, token: str = _TOKEN, level: float = _LEVEL) -> Json:
    return {"token": token, "protocol": protocol, "start_s": start_s, "clock": clock, "level": level}


def _sound(name: str, duration_s: float, frames: list[Json], **more: Any) -> Json:
    defaults = {"tones": [], "gaps_s": [], "noise": 1e-4, "seed": 1}
    return {"name": name, "duration_s": duration_s, "frames": frames, **defaults, **more}


_SOUNDS: Final = (
    *(_sound(f"protocol {protocol}", 7 - protocol, [_frame(protocol)]) for protocol in (3, 4, 5)),
    _sound("noise at -17 dB, protocol 4", 3, [_frame(4)], noise=0.61),
    _sound("noise at -14 dB, protocol 5", 2, [_frame(5)], noise=0.43),
    _sound("a clock 5,000 ppm fast, with noise", 3, [_frame(4, clock=0.005)], noise=0.3),
    _sound("a clock 5,000 ppm slow, with noise", 3, [_frame(4, clock=-0.005)], noise=0.3),
    _sound("a gap of 0.3 s", 3, [_frame(4)], gaps_s=[[1.2, 1.5]]),
    _sound("without its first 0.3 s", 2.5, [_frame(4, start_s=-0.3)]),
    _sound("without its last 0.4 s", 2.25, [_frame(4)]),
    _sound("steady tones of television sets", 3, [_frame(4)], tones=[{"hz": 15_734, "level": 0.3}]),
    _sound(
        "cut off, then whole",
        5,
        [_frame(4), _frame(4, start_s=2.2, token="brd_0000000000000000")],
        gaps_s=[[1.3, 2.2]],
    ),
    _sound("noise alone", 3, [], noise=0.3),
)


def _describe_hearing(case: Json) -> Json:
    decoder = Decoder()
    samples = np.clip(make_sound(case), -1, 1)
    heard = [*decoder.feed(samples), *decoder.finish()]
    return {**case, "tokens": list(dict.fromkeys(f"brd_{each}" for each in heard))}


def _round(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return values of four digits, so that every language reads the same."""
    rounded: NDArray[np.float64] = np.vectorize(lambda each: float(f"{each:.4g}"))(values)
    return rounded


def main() -> None:
    for name, text in files().items():
        (VECTORS / name).write_text(text)


if __name__ == "__main__":
    main()
