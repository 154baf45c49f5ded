"""How deep in noise and damage the SDK hears, beside ggwave and what physics allows: `python -m bench.hearing`.

The frames are ggwave's own. `--false-tokens SECONDS` listens to sound without a frame instead, and prints what it held.
"""

import argparse
import math
import platform
import string
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from itertools import cycle, pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import Final

import ggwave
import numpy as np
import soxr
from numpy.random import Generator, default_rng
from numpy.typing import NDArray
from rich.progress import track
from soundmark_sdk import hear_samples
from soundmark_sdk.hearing.frame_code import GROUP_BLOCKS, GROUPS, KNOWN_GROUPS

from bench.machine import processor
from bench.programmes import PROGRAMMES, RATE_HZ, make_programme

_RESULTS: Final = Path(__file__).with_name("RESULTS.md")
_BEGIN: Final = "<!-- measured: hearing (written by python -m bench.hearing) -->"
_END: Final = "<!-- measured: hearing end -->"
_SEED: Final = 20261126
_LETTERS: Final = string.ascii_letters + string.digits + "-_"
_BLOCK: Final = 1024
_MARKER: Final = 16 * _BLOCK
_FLOOR: Final = 1e-4  # What every sound has of noise.
# Energy of a tone in a group over noise density is the signal-to-noise ratio plus this, in dB.
_GAIN_DB: Final = {3: 29.5, 4: 28.0, 5: 25.5}
# Around the places where the share heard goes from all to none.
_OURS_DB: Final = {3: (-23.0, -22.0, -21.0), 4: (-21.5, -20.7, -20.0, -19.2), 5: (-19.0, -18.3, -17.5, -16.7)}
_GGWAVE_DB: Final = (-13.0, -12.0, -11.0, -10.0, -9.0, -8.0)
_BOUND_DB: Final = (-6, -5, -4, -3, -2.5, -2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2)
_BOUND_CENTRE_DB: Final = 6.3  # Of a tone in a group, where half of the frames are decodable.

Sound = NDArray[np.float64]
Damage = Callable[[Sound, Generator], Sound]


@dataclass(frozen=True, slots=True)
class Knee:
    """Of one protocol and receiver: the share heard at each ratio in dB."""

    protocol: int
    receiver: str
    shares: Mapping[float, float]

    def find_db(self, share: float) -> float | None:
        """Return the lowest ratio from which on `share` is heard, between those that were measured."""
        ratios = sorted(self.shares)
        for low, high in reversed(list(pairwise(ratios))):
            if self.shares[low] < share <= self.shares[high]:
                slope = (share - self.shares[low]) / (self.shares[high] - self.shares[low])
                return low + slope * (high - low)
        return None


def make_text(chance: Generator) -> str:
    """Return a random frame."""
    return "XRC1:brd_" + "".join(chance.choice(list(_LETTERS), 16))


def render(text: str, protocol: int) -> Sound:
    """Return a frame as ggwave sends it."""
    ggwave.disableLog()
    return np.frombuffer(ggwave.encode(text, protocolId=protocol, volume=50), np.float32).astype(np.float64)


def hear_by_ggwave(sound: Sound, rate_hz: int = RATE_HZ) -> list[str]:
    """Return the payloads that an instance of ggwave hears in a sound of any rate."""
    ggwave.disableLog()
    sound = sound if rate_hz == RATE_HZ else soxr.resample(sound, rate_hz, RATE_HZ)
    instance = ggwave.init(ggwave.getDefaultParameters())
    try:
        padded = np.concatenate([sound, np.zeros(RATE_HZ)]).astype(np.float32)
        chunks = padded[: len(padded) // _BLOCK * _BLOCK].reshape(-1, _BLOCK)
        payloads = [ggwave.decode(instance, chunk.tobytes()) for chunk in chunks]
        return [payload.decode("latin-1") for payload in payloads if payload]
    finally:
        ggwave.free(instance)


def hear_by_sdk(sound: Sound) -> list[str]:
    """Return the frames that the SDK hears."""
    return [frame.text for frame in hear_samples(sound, RATE_HZ)]


def place(sound: Sound, chance: Generator) -> Sound:
    """Put silence around a sound: nobody starts to listen on its first sample."""
    return np.concatenate([np.zeros(chance.integers(10_000, 34_000)), sound, np.zeros(24_000)])


def add_noise(sound: Sound, ratio_db: float, chance: Generator) -> Sound:
    """Add white noise, 0 to 24 kHz, whose power is that of the audible sound less `ratio_db`."""
    audible = sound[np.flatnonzero(sound)[0] : np.flatnonzero(sound)[-1]]
    deviation = np.sqrt(np.mean(np.square(audible)) / 10 ** (ratio_db / 10))
    return sound + chance.normal(0, deviation, len(sound))


def measure_knee(protocol: int, receiver: str, count: int) -> Knee:
    """Measure how many of `count` frames are heard at each ratio."""
    if receiver == "soft bound":
        return find_bound(protocol)
    hear, ratios = (hear_by_sdk, _OURS_DB[protocol]) if receiver == "SDK" else (hear_by_ggwave, _GGWAVE_DB)
    shares = {}
    for ratio_db in ratios:
        chance = default_rng([_SEED, protocol, round(-10 * ratio_db)])
        texts = [make_text(chance) for _ in range(count)]
        heard = sum(text in hear(add_noise(place(render(text, protocol), chance), ratio_db, chance)) for text in texts)
        shares[ratio_db] = heard / count
    return Knee(protocol, receiver, shares)


def find_bound(protocol: int, count: int = 4000) -> Knee:
    """Return what random coding allows with the known part and the 64 letters: Monte Carlo of noncoherent 16-FSK."""
    shares = {}
    for offset_db in _BOUND_DB:
        tone_db = _BOUND_CENTRE_DB + offset_db
        chance = default_rng([_SEED, round(100 * (offset_db + 20))])
        energy = 10 ** (tone_db / 10)
        noise = chance.normal(0, math.sqrt(0.5), (2, count, 52, 16))
        noise[0, :, :, 0] += math.sqrt(energy)
        root = 2 * np.sqrt(energy * np.square(noise).sum(axis=0))
        likelihood = np.i0(root)
        first, second = likelihood[:, ::2], likelihood[:, 1::2]
        right = np.log2(first[..., 0] * second[..., 0])
        # Letters are 4 of the 16 upper halves; which ones makes no difference.
        means = first.mean(axis=2) * np.where(np.arange(26) < 16, second[..., :4].mean(axis=2), second.mean(axis=2))
        information = (right - np.log2(means)).sum(axis=1)
        shares[tone_db - _GAIN_DB[protocol]] = float(np.mean(1 - np.minimum(1, 2.0 ** -(information - 96))))
    return Knee(protocol, "soft bound", shares)


def drop_out(duration_s: float, count: int = 1) -> Damage:
    def damage(sound: Sound, chance: Generator) -> Sound:
        damaged = sound.copy()
        audible = np.flatnonzero(sound)
        length = round(duration_s * RATE_HZ)
        for _ in range(count):
            start = chance.integers(audible[0], audible[-1] - length)
            damaged[start : start + length] = 0
        return damaged

    return damage


def cut_off(hertz: float) -> Damage:
    def damage(sound: Sound, _: Generator) -> Sound:
        spectrum = np.fft.rfft(sound)
        spectrum[np.fft.rfftfreq(len(sound), 1 / RATE_HZ) > hertz] = 0
        filtered: Sound = np.fft.irfft(spectrum, len(sound))
        return filtered

    return damage


def speed_up(clock: float, ratio_db: float) -> Damage:
    def damage(sound: Sound, chance: Generator) -> Sound:
        fine: Sound = np.fft.irfft(np.fft.rfft(sound), 8 * len(sound)) * 8
        moved: Sound = np.interp(np.arange(0, len(sound) - 2, 1 + clock) * 8, np.arange(len(fine)), fine)
        return add_noise(moved, ratio_db, chance)

    return damage


def add_tone(hertz: float, ratio_db: float) -> Damage:
    def damage(sound: Sound, _: Generator) -> Sound:
        audible = sound[np.flatnonzero(sound)[0] : np.flatnonzero(sound)[-1]]
        level = np.sqrt(2 * np.mean(np.square(audible)) * 10 ** (ratio_db / 10))
        together = sound + level * np.sin(2 * np.pi * hertz * np.arange(len(sound)) / RATE_HZ)
        scaled: Sound = together / max(1.0, float(np.abs(together).max()))
        return scaled

    return damage


def collide(ratio_db: float, protocol: int) -> Damage:
    def damage(sound: Sound, chance: Generator) -> Sound:
        other = render(make_text(chance), protocol) * 10 ** (ratio_db / 20)
        at = int(chance.integers(0, len(sound) - 24_000))
        together = np.zeros(max(len(sound), at + len(other)) + 24_000)
        together[: len(sound)] += sound
        together[at : at + len(other)] += other
        scaled: Sound = together / max(1.0, float(np.abs(together).max()))
        return scaled

    return damage


def list_damages(protocol: int) -> dict[str, Damage]:
    """Return every damage, by its name."""
    return {
        "clock +5,000 ppm, noise at -18 dB (-15 in protocol 5)": speed_up(0.005, -15 if protocol == 5 else -18),
        "clock -5,000 ppm, the same noise": speed_up(-0.005, -15 if protocol == 5 else -18),
        "a dropout of 200 ms": drop_out(0.2),
        "a dropout of 300 ms": drop_out(0.3),
        "a dropout of 400 ms": drop_out(0.4),
        "a dropout of 500 ms": drop_out(0.5),
        "three dropouts of 100 ms": drop_out(0.1, 3),
        "low-pass 18.4 kHz": cut_off(18_400),
        "low-pass 18.0 kHz": cut_off(18_000),
        "steady 15,734 Hz, 10 dB above": add_tone(15_734, 10),
        "steady 17,400 Hz, 10 dB above": add_tone(17_400, 10),
        "another Code over it, as loud": collide(0, protocol),
        "another Code over it, 6 dB below": collide(-6, protocol),
    }


def measure_damage(protocol: int, name: str, count: int) -> tuple[int, int]:
    """Return how many of `count` damaged frames the SDK and ggwave hear."""
    chance = default_rng([_SEED, protocol, *name.encode()])
    ours = theirs = 0
    for _ in range(count):
        text = make_text(chance)
        sound = list_damages(protocol)[name](place(render(text, protocol), chance), chance)
        sound = sound + chance.normal(0, _FLOOR, len(sound))
        ours += text in hear_by_sdk(sound)
        theirs += text in hear_by_ggwave(sound)
    return ours, theirs


def report(protocols: Sequence[int], knee_count: int, damage_count: int) -> Iterator[str]:
    """Yield the tables as lines of Markdown, measured on every core."""
    cost = _measure_cost()
    names = list_damages(4)
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        knees = [
            pool.submit(measure_knee, protocol, receiver, knee_count)
            for protocol in protocols
            for receiver in ("SDK", "ggwave", "soft bound")
        ]
        scores = {
            name: [pool.submit(measure_damage, protocol, name, damage_count) for protocol in protocols]
            for name in names
        }
        yield "| white noise | protocol | 50 % | 95 % |"
        yield "|---|---|---:|---:|"
        for knee in track([each.result() for each in knees], description="Adding noise"):
            cells = (knee.find_db(share) for share in (0.5, 0.95))
            texts = ("outside" if each is None else f"{each:.1f} dB" for each in cells)
            yield f"| {knee.receiver} | {knee.protocol} | {' | '.join(texts)} |"
        yield ""
        yield f'{knee_count} frames at each ratio that was measured; "outside" is beyond these.'
        yield ""
        yield f"| damage; heard by the SDK and ggwave, of {damage_count} | " + " | ".join(map(str, protocols)) + " |"
        yield "|---|" + "---:|" * len(protocols)
        for name in track(names, description="Damaging"):
            pairs = (each.result() for each in scores[name])
            yield f"| {name} | " + " | ".join(f"{ours}, {theirs}" for ours, theirs in pairs) + " |"
    yield ""
    yield f"Processor time per second of sound: {cost}."
    yield (
        f"Measured on {datetime.now(UTC):%Y-%m-%d} on {processor()}, Python {platform.python_version()}, "
        f"NumPy {np.__version__}, seed {_SEED}."
    )


def _measure_cost() -> str:
    sounds = {name: make_programme(name, 20.0)[:, 0].astype(np.float64) for name in PROGRAMMES}
    sounds["permanent false prefixes"] = np.concatenate(list(_take(_destroyed(default_rng(1)), 40)))
    texts = []
    for name, sound in sounds.items():
        start = time.process_time()
        hear_by_sdk(sound)
        texts.append(f"{name} {100 * (time.process_time() - start) * RATE_HZ / len(sound):.1f} %")
    return ", ".join(texts)


def _take(sounds: Iterator[Sound], count: int) -> Iterator[Sound]:
    return (sound for sound, _ in zip(sounds, range(count), strict=False))


def _destroyed(chance: Generator) -> Iterator[Sound]:
    """Yield frames of protocol 5 whose groups after the known ones come from many frames."""
    group = GROUP_BLOCKS[5] * _BLOCK
    while True:
        sounds = [render(make_text(chance), 5) for _ in range(GROUPS)]
        damaged = sounds[0].copy()
        for index in range(KNOWN_GROUPS, GROUPS):
            at, source = (_MARKER + each * group for each in (index, chance.integers(KNOWN_GROUPS, GROUPS)))
            damaged[at : at + group] = sounds[index][source : source + group]
        yield damaged + chance.normal(0, 1e-3, len(damaged))


@cache
def _programme(name: str) -> Sound:
    return make_programme(name, 60.0)[:, 0].astype(np.float64)


def list_foreign_sounds(chance: Generator) -> dict[str, Callable[[], Sound]]:
    """Return makers of sound that holds no frame."""

    def burst() -> Sound:
        return chance.normal(0, 0.2, 30 * RATE_HZ) * (np.repeat(chance.random(300), RATE_HZ // 10) < 0.3)

    def foreign() -> Sound:
        text = "".join(chance.choice(list(_LETTERS), chance.integers(4, 40)))
        return np.concatenate([render(text, int(chance.integers(3, 6))), np.zeros(5_000)])

    def programme(name: str) -> Callable[[], Sound]:
        return lambda: _programme(name) * chance.uniform(0.1, 1)

    damaged = _destroyed(chance)
    return {
        "white noise": lambda: chance.normal(0, 0.1, 30 * RATE_HZ),
        "bursts": burst,
        "ggwave's other messages": foreign,
        **{name: programme(name) for name in PROGRAMMES},
        "frames with a destroyed payload": lambda: np.concatenate(list(_take(damaged, 20))),
    }


def find_false_tokens(duration_s: float) -> Iterator[str]:
    """Yield, after `duration_s`, what was listened to and which tokens were heard in it."""
    chance = default_rng(_SEED)
    sounds = list_foreign_sounds(chance)
    seconds = dict.fromkeys(sounds, 0.0)
    heard: list[str] = []
    end = time.monotonic() + duration_s
    for name in cycle(sounds):
        if time.monotonic() >= end:
            break
        sound = sounds[name]()
        seconds[name] += len(sound) / RATE_HZ
        heard += hear_by_sdk(sound + chance.normal(0, _FLOOR, len(sound)))
    yield f"{len(heard)} tokens that nobody sent in {sum(seconds.values()) / 3600:.2f} h: " + ", ".join(
        f"{name} {each / 60:.0f} min" for name, each in seconds.items()
    )
    yield from heard


def write(measured: str) -> None:
    """Put `measured` between the two marks of the page."""
    before, found, rest = _RESULTS.read_text("utf-8").partition(_BEGIN)
    assert found, "the page has the marks"
    _, _, after = rest.partition(_END)
    _RESULTS.write_text(f"{before}{_BEGIN}\n{measured}\n{_END}{after}", "utf-8")


def main() -> None:
    """Measure what the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100, help="frames for each ratio of noise")
    parser.add_argument("--damaged", type=int, default=50, help="frames for each damage")
    parser.add_argument("--protocol", type=int, choices=sorted(GROUP_BLOCKS), action="append", help="instead of all")
    parser.add_argument("--print", action="store_true", help="print the tables and leave RESULTS.md alone")
    parser.add_argument("--false-tokens", type=float, metavar="SECONDS")
    options = parser.parse_args()
    if options.false_tokens is not None:
        print("\n".join(find_false_tokens(options.false_tokens)))  # noqa: T201 - this program's output
        return
    measured = "\n".join(report(options.protocol or sorted(GROUP_BLOCKS), options.count, options.damaged))
    if options.print:
        print(measured)  # noqa: T201 - this program's output
    else:
        write(measured)


if __name__ == "__main__":
    main()
