"""Listen to sound that holds no frame: `python -m bench.false_tokens --frames 10000 --hours 24`.

Each sound follows from its number, so a run may be done in parts (`--first`), and on several machines. It prints each
token that it hears and, in between, how far it is.
"""

import argparse
import string
import time
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Final

import numpy as np
from numpy.random import Generator, default_rng
from numpy.typing import NDArray

from bench.hearing import FLOOR, Sound, hear_by_javascript, hear_by_sdk, make_destroyed, render
from bench.programmes import PROGRAMMES, RATE_HZ, make_programme

_SEED: Final = 20261127
_PART_S: Final = 60
_FRAMES_TOGETHER: Final = 10
# The shortest frame most often: it begins like a frame in the least time.
_PROTOCOLS: Final = (5, 5, 4, 5, 5, 3)
_OTHER_BYTES: Final = string.ascii_letters + string.digits + string.punctuation
_KINDS: Final = ("white noise", "bursts", "ggwave's other messages", *PROGRAMMES)
_RECEIVERS: Final = {"python": hear_by_sdk, "javascript": hear_by_javascript}


def make_sound(number: int) -> tuple[str, Sound]:
    """Return the kind of the sound with this number and a minute of it."""
    kind = _KINDS[number % len(_KINDS)]
    chance = default_rng([_SEED, number])
    if kind == "white noise":
        sound = chance.normal(0, 10 ** chance.uniform(-3, -0.5), _PART_S * RATE_HZ)
    elif kind == "bursts":
        sound = chance.normal(0, 0.2, _PART_S * RATE_HZ) * np.repeat(chance.random(_PART_S * 10) < 0.3, RATE_HZ // 10)
    elif kind in PROGRAMMES:
        # Generating takes longer than listening: two takes of three, anywhere in time, make a sound of their own.
        first, second = (np.roll(_make_take(kind, int(chance.integers(3))), chance.integers(10**6)) for _ in range(2))
        sound = (first * chance.uniform(0.1, 1) + second * chance.uniform(0, 0.5)).astype(np.float64)
    else:
        sound = np.concatenate(list(_play_other_messages(chance)))[: _PART_S * RATE_HZ]
    return kind, sound + chance.normal(0, FLOOR, len(sound))


@cache
def _make_take(kind: str, take: int) -> NDArray[np.float32]:
    return np.tile(make_programme(kind, _PART_S / 4, take=1 + take)[:, 0], 4)


def _play_other_messages(chance: Generator) -> Iterator[Sound]:
    """Yield a minute of other payloads of ggwave, some of which begin as a frame does."""
    count = 0
    while count < _PART_S * RATE_HZ:
        begin = "XRC1:brd_" if chance.random() < 0.1 else ""
        text = begin + "".join(chance.choice(list(_OTHER_BYTES), chance.integers(4, 40)))
        if len(text) == len("XRC1:brd_") + 16:
            continue  # It may be a frame.
        parts = [render(text, int(chance.integers(3, 6))), np.zeros(chance.integers(0, RATE_HZ))]
        count += sum(map(len, parts))
        yield from parts


def destroy_frames(receiver: str, first: int, count: int) -> Iterator[str]:
    """Yield what is heard in frames with a right prefix and a destroyed payload, and how far it is."""
    heard: list[str] = []
    for begin in range(first, first + count, _FRAMES_TOGETHER):
        protocol = _PROTOCOLS[begin // _FRAMES_TOGETHER % len(_PROTOCOLS)]
        end = min(begin + _FRAMES_TOGETHER, first + count)
        heard += _RECEIVERS[receiver](np.concatenate(list(make_destroyed(range(begin, end), protocol))))
        yield f"{receiver}: {len(heard)} tokens in frames {first} to {end - 1} with a destroyed payload {heard}"


def listen(receiver: str, first: int, hours: float) -> Iterator[str]:
    """Yield what is heard in hours of sound, and how far it is."""
    heard: list[str] = []
    minutes: Counter[str] = Counter()
    begin = time.process_time()
    for number in range(first, first + round(60 * hours)):
        kind, sound = make_sound(number)
        minutes[kind] += 1
        heard += _RECEIVERS[receiver](sound)
        speed = (number - first + 1) / (time.process_time() - begin) * 60
        corpus = ", ".join(f"{name} {count}" for name, count in minutes.items())
        yield f"{receiver}: {len(heard)} tokens in minutes {first} to {number}, {speed:.0f} a minute ({corpus}) {heard}"


def main() -> None:
    """Measure what the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=0, help="with a destroyed payload")
    parser.add_argument("--hours", type=float, default=0.0, help="of other sound")
    parser.add_argument("--first", type=int, default=0, help="the number of the first frame, or minute")
    parser.add_argument("--receiver", choices=sorted(_RECEIVERS), default="python")
    options = parser.parse_args()
    for line in destroy_frames(options.receiver, options.first, options.frames):
        print(line, flush=True)  # noqa: T201 - this program's output
    for line in listen(options.receiver, options.first, options.hours):
        print(line, flush=True)  # noqa: T201 - this program's output


if __name__ == "__main__":
    main()
