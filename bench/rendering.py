"""Our synthesiser against ggwave's: how long a WAV takes, and how much noise ggwave's own receiver bears."""

import contextlib
import io
import time
import wave
from collections.abc import Callable, Iterator
from statistics import median
from typing import Final, cast

import ggwave
import numpy as np
from numpy.random import Generator, default_rng
from numpy.typing import NDArray

from bench import seed, wrk
from bench.decoding import random_frame
from bench.figures import Figure, ratio_of_rounds
from bench.rounds import pace
from bench.service import OPERATOR_TOKEN, audio, core, seeded
from bench.wrk import Demand, Load
from soundmark.audio.synthesis import PROTOCOLS, SAMPLE_RATE_HZ, render_wav, synthesise
from soundmark.embedded.postgres import RunningCluster
from soundmark.wire.private.audio import Protocol

Samples = NDArray[np.float32]

_VOLUME: Final = 50  # Half of full scale, like ours.
_INT16: Final = 4  # GGWAVE_SAMPLE_FORMAT_I16, which the binding does not export.
_SEED: Final = 20261126
_TIMED_COUNT: Final = 200
_HEARD_COUNT: Final = 100  # At each level of the noise.
_LEVELS_DB: Final = range(-6, -22, -1)
_LEAD_MAX: Final = 20_000  # Samples of noise before a sound: it may begin anywhere between ggwave's steps.
_BLOCK: Final = 1024
_CONNECTIONS: Final = 4
_GGWAVE_RMS: Final = {152_576: 0.1201, 112_640: 0.1167, 72_704: 0.1094}  # Measured, by the samples of a sound.


def rendering(_: RunningCluster) -> list[Figure]:
    """Measure the time of one WAV, and the noise at which a stock ggwave hears half of the frames."""
    return [*(_time(protocol) for protocol in PROTOCOLS), *(_depth(protocol) for protocol in PROTOCOLS)]


def sound(cluster: RunningCluster) -> list[Figure]:
    """Measure WAVs through Core's API against a bare loop over ggwave in one process."""
    database = seeded(cluster, 1_000)
    paths = [
        f"/v1/codes/{seed.xr_id_of(number)}/audio?organization_id={seed.ORGANIZATION_ID}" for number in range(1_000)
    ]
    demand = Demand(paths, _CONNECTIONS, f"Bearer {OPERATOR_TOKEN}")
    bare_rates: list[float] = []
    loads: list[Load] = []
    with audio() as audio_url, core(database, audio_url=audio_url) as service:
        wrk.run(service.base_url, demand, seconds=pace.warm_s)
        for number in range(pace.rounds):
            bare_rates.append(_bare_renders_per_s())
            loads.append(wrk.run(service.base_url, demand, seconds=pace.round_s, seed=number))
    rates = [load.requests_per_s for load in loads]
    return [
        Figure(
            "WAVs through Core",
            f"{median(rates):,.0f}/s",
            f"ggwave and WAV in a bare loop: {median(bare_rates):,.0f}/s",
            ratio_of_rounds(rates, bare_rates),
            "at least",
            0.7,
        )
    ]


@contextlib.contextmanager
def ggwave_renderer() -> Iterator[Callable[[str, Protocol], bytes]]:
    """Yield what renders a WAV file with ggwave."""
    ggwave.disableLog()
    instance = ggwave.init(ggwave.getDefaultParameters() | {"sampleFormatOut": _INT16})

    def render(frame: str, protocol: Protocol) -> bytes:
        file = io.BytesIO()
        with wave.open(file, "wb") as writer:
            writer.setnchannels(1)
            writer.setsampwidth(2)
            writer.setframerate(SAMPLE_RATE_HZ)
            writer.writeframes(ggwave.encode(frame, protocolId=protocol, volume=_VOLUME, instance=instance))
        return file.getvalue()

    try:
        yield render
    finally:
        ggwave.free(instance)


def synthesise_by_ggwave(frame: str, protocol: Protocol) -> Samples:
    """Return ggwave's own sound of a frame."""
    ggwave.disableLog()
    return np.frombuffer(ggwave.encode(frame, protocolId=protocol, volume=_VOLUME), "<f4")


def hear_by_ggwave(samples: Samples) -> str | None:
    """Return what a ggwave hears that heard nothing before: an unfinished frame would hide the next one."""
    instance = ggwave.init()
    try:
        payload = cast("bytes | None", ggwave.decode(instance, samples.astype("<f4").tobytes()))
    finally:
        ggwave.free(instance)
    return None if payload is None else payload.decode(errors="replace")


def count_heard(
    make: Callable[[str, Protocol], Samples], protocol: Protocol, level_db: float, count: int = _HEARD_COUNT
) -> int:
    """Return how many of `count` sounds a stock ggwave hears in white noise.

    The level is that of ggwave's own sounds over the noise between 0 and 24 kHz, also for our own sounds.
    """
    chance = default_rng([_SEED, protocol])
    heard_count = 0
    for _ in range(count):
        frame = random_frame(chance)
        heard_count += hear_by_ggwave(mix_with_noise(make(frame, protocol), level_db, chance)) == frame
    return heard_count


def mix_with_noise(sound: Samples, level_db: float, chance: Generator) -> Samples:
    """Return the sound somewhere in white noise. The level is as in `count_heard`."""
    lead = int(chance.integers(1, _LEAD_MAX))
    length = -(-(lead + len(sound) + _LEAD_MAX) // _BLOCK) * _BLOCK
    samples = _GGWAVE_RMS[len(sound)] / 10 ** (level_db / 20) * chance.standard_normal(length, np.float32)
    samples[lead : lead + len(sound)] += sound
    return samples.astype(np.float32)


def _time(protocol: Protocol) -> Figure:
    chance = default_rng(_SEED)
    frames = [random_frame(chance) for _ in range(_TIMED_COUNT)]
    with ggwave_renderer() as render:
        spent_s = [[_spent_s(one, frame, protocol) for one in (render_wav, render)] for frame in frames]
    ours_s, theirs_s = (median(column) for column in zip(*spent_s, strict=True))
    return Figure(
        f"One WAV of protocol {protocol}",
        f"{1e3 * ours_s:.2f} ms",
        f"ggwave: {1e3 * theirs_s:.2f} ms",
        ours_s / theirs_s,
        "at most",
        0.3,
    )


def _spent_s(render: Callable[[str, Protocol], bytes], frame: str, protocol: Protocol) -> float:
    began_s = time.process_time()
    render(frame, protocol)
    return time.process_time() - began_s


def _depth(protocol: Protocol) -> Figure:
    ours_db, theirs_db = (_half_heard_db(make, protocol) for make in (synthesise, synthesise_by_ggwave))
    return Figure(
        f"Stock ggwave hears half of our frames of protocol {protocol} in noise",
        f"{ours_db:.1f} dB",
        f"its own frames: {theirs_db:.1f} dB",
        theirs_db - ours_db,
        "at least",
        4,
        " dB",
    )


def _half_heard_db(make: Callable[[str, Protocol], Samples], protocol: Protocol) -> float:
    """Return the level at which half of the frames are heard, between the two measured levels around it."""
    before = _HEARD_COUNT
    for level_db in _LEVELS_DB:
        heard_count = count_heard(make, protocol, level_db)
        if heard_count < _HEARD_COUNT / 2:
            return level_db + (_HEARD_COUNT / 2 - heard_count) / (before - heard_count)
        before = heard_count
    raise RuntimeError("half of the frames are heard in any noise that was tried")


def _bare_renders_per_s() -> float:
    frames = [f"XRC1:{seed.token_of(number)}" for number in range(1_000)]
    with ggwave_renderer() as render:
        began_s, count = time.perf_counter(), 0
        while (taken_s := time.perf_counter() - began_s) < pace.round_s:
            render(frames[count % len(frames)], 4)
            count += 1
    return count / taken_s
