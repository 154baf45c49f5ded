"""Mix a Code into a programme: at which level, and what the result is."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
import soxr
from numpy.random import default_rng
from soundmark_sdk.resampling import RATE_HZ

from soundmark.studio.mastering.codecs import Codec, CodecResult, Excerpt, cut_excerpt, try_codec, try_codecs
from soundmark.studio.mastering.frame_tones import FrameTones, Samples
from soundmark.studio.mastering.loudness import LoudnessMeter, PeakMeter, weigh_channels
from soundmark.studio.mastering.margins import GOOD_DB
from soundmark.studio.mastering.placing import NotPlaced, Place
from soundmark.studio.mastering.programme import Insertion, Programme, WouldClip, open_programme
from soundmark.studio.mastering.repetitions import (
    Repetition,
    choose_channels,
    convert,
    measure_repetition,
    measure_sound,
)

LEVEL_LEAST_DB: Final = -30.0
LEVEL_MOST_DB: Final = 0.0
_AIM_DB: Final = GOOD_DB + 2  # Of `auto`: a margin is confirmed in steps of 2 dB, with noise that differs.
_TRIES_MAX: Final = 12
_LEVEL_STEP_DB: Final = 1.0
# What a Code is compared with in a programme that is silent: the level of broadcasters.
_SILENT_DBFS: Final = -20.0
_OVERSAMPLING: Final = 4
_SEED: Final = 20261126


@dataclass(frozen=True, slots=True)
class FileFacts:
    """What is measured of a whole file: loudness and true peak are None in silence, `rms` is of the Code's channels."""

    loudness_lufs: float | None
    peak_dbtp: float | None
    rms: float


@dataclass(frozen=True, slots=True)
class Mixed:
    """A programme with its Code. `level_db` is the Code's RMS against that of the whole programme."""

    level_db: float
    before: FileFacts
    after: FileFacts
    repetitions: tuple[Repetition, ...]
    codecs: tuple[CodecResult, ...]


def measure_file(programme: Programme) -> FileFacts:
    """Measure a whole programme, in one pass and in blocks.

    Raises: NotReadable; OSError.
    """
    channels = list(choose_channels(programme.channel_count, programme.speakers))
    loudness = LoudnessMeter(programme.sample_rate, weigh_channels(programme.channel_count, programme.speakers))
    peak = PeakMeter(programme.sample_rate, programme.channel_count)
    energy = 0.0
    for block in programme.iterate():
        loudness.feed(block)
        peak.feed(block)
        energy += float(np.mean(np.square(block[:, channels]), axis=1).sum())
    peak.feed(np.zeros((0, programme.channel_count)), last=True)
    return FileFacts(loudness.integrated_lufs(), peak.peak_dbtp(), math.sqrt(energy / max(programme.sample_count, 1)))


def mix(
    programme: Programme,
    tones: FrameTones,
    places: Sequence[Place],
    target: Path,
    *,
    level_db: float | None,
    codecs: Sequence[Codec] = (),
) -> Mixed:
    """Write the programme with the Code at these places, and measure the result.

    Without a level, it is the lowest that leaves every repetition a good margin after every codec, or the highest that
    fits. The file is written even if a repetition is not heard: the caller judges.

    Raises: NotPlaced; WouldClip for a level that was given; CodecUnavailable; NotReadable; OSError.
    """
    if not places:
        raise NotPlaced("the programme is shorter than the Code")
    before = measure_file(programme)
    mixer = _Mixer(programme, tones, places, before)
    chosen_db = mixer.find_level(codecs) if level_db is None else level_db
    for place in places:
        mixer.require_room(place, chosen_db)
    sound = mixer.scale(chosen_db)
    programme.write_with([Insertion(place.start, sound) for place in places], mixer.channels, target)
    with open_programme(target) as written:
        chance = default_rng(_SEED)
        repetitions = tuple(measure_repetition(written, place.start, mixer.channels, tones, chance) for place in places)
        results = tuple(try_codecs(written, repetitions, codecs))
        return Mixed(chosen_db, before, measure_file(written), repetitions, results)


class _Mixer:
    """Tries levels on the places alone, without writing the programme."""

    def __init__(self, programme: Programme, tones: FrameTones, places: Sequence[Place], before: FileFacts) -> None:
        self.channels: Final = choose_channels(programme.channel_count, programme.speakers)
        self._programme: Final = programme
        self._tones: Final = tones
        self._places: Final = places
        self._sound: Final = convert(tones.render(), RATE_HZ, programme.sample_rate)
        reference = before.rms if before.rms > 0 else 10 ** (_SILENT_DBFS / 20)
        self._unit: Final = reference / float(np.sqrt(np.mean(np.square(tones.render()))))

    def scale(self, level_db: float) -> Samples:
        """Return the Code's sound at a level."""
        return self._sound * self._gain(level_db)

    def _gain(self, level_db: float) -> float:
        return float(self._unit * 10 ** (level_db / 20))

    def find_level(self, codecs: Sequence[Codec]) -> float:
        """Return the lowest level, in steps of one decibel, at which every repetition has a good margin.

        Where none has, or where it would clip, the highest that fits. A codec that loses the Code even then is left
        out: no level would help.
        """
        at_unit_db = 20 * math.log10(self._unit)
        weakest_db = min(place.margin_db for place in self._places) + at_unit_db
        highest_db = self._find_highest()
        level_db = float(np.clip(math.ceil(_AIM_DB - weakest_db), LEVEL_LEAST_DB, highest_db))
        hopeful = [codec for codec in codecs if self._is_heard_after(codec, highest_db)]
        for _ in range(_TRIES_MAX):
            missing_db = _AIM_DB - self._find_weakest(level_db, hopeful)
            if missing_db <= 0 or level_db >= highest_db:
                break
            level_db = min(highest_db, level_db + max(_LEVEL_STEP_DB, math.ceil(missing_db / 2)))
        return level_db

    def _find_highest(self) -> float:
        """Return the highest level at which the Code fits everywhere.

        Raises: NotPlaced.
        """
        level_db = LEVEL_MOST_DB
        while level_db >= LEVEL_LEAST_DB:
            try:
                for place in self._places:
                    self.require_room(place, level_db)
            except WouldClip as clipped:
                level_db -= max(_LEVEL_STEP_DB, math.floor(clipped.over_db))
            else:
                return level_db
        raise NotPlaced(
            "the programme leaves no room for the Code below full scale; lower the programme by 1 dB or more"
        )

    def _is_heard_after(self, codec: Codec, level_db: float) -> bool:
        excerpts = (self._mix_excerpt(place, level_db) for place in self._places)
        return all(each.is_heard for each in try_codec(codec, excerpts, self._programme.sample_rate).repetitions)

    def _find_weakest(self, level_db: float, codecs: Sequence[Codec]) -> float:
        """Return the smallest margin that a repetition has by itself and after any codec."""
        chance = default_rng(_SEED)
        rate = self._programme.sample_rate
        measured = [_measure_excerpt(self._mix_excerpt(place, level_db), rate, chance) for place in self._places]
        for codec in codecs:
            excerpts = (self._mix_excerpt(place, level_db) for place in self._places)
            measured += try_codec(codec, excerpts, rate).repetitions
        return min(each.margin_db if each.is_heard else min(each.margin_db, -_LEVEL_STEP_DB) for each in measured)

    def _mix_excerpt(self, place: Place, level_db: float) -> Excerpt:
        excerpt = cut_excerpt(self._programme, place.start, self.channels, self._tones)
        samples = excerpt.samples.copy()
        sound = self.scale(level_db)[: len(samples) - excerpt.begins]
        samples[excerpt.begins : excerpt.begins + len(sound)] += sound[:, None]
        return replace(excerpt, samples=samples)

    def require_room(self, place: Place, level_db: float) -> None:
        """Refuse a level at which the true peak exceeds full scale, unless the programme's own already does.

        Raises: WouldClip.
        """
        mixed = self._mix_excerpt(place, level_db)
        largest = _find_true_peak(mixed.samples)
        if largest > 1.0 and largest > _find_true_peak(
            cut_excerpt(self._programme, place.start, self.channels, self._tones).samples
        ):
            raise WouldClip(place.start / self._programme.sample_rate, 20 * math.log10(largest))


def _measure_excerpt(excerpt: Excerpt, rate: int, chance: np.random.Generator) -> Repetition:
    sound = convert(excerpt.samples.mean(axis=1), rate)
    inner = excerpt.samples[excerpt.begins : excerpt.begins + math.ceil(excerpt.tones.length * rate / RATE_HZ)]
    begins = round(excerpt.begins * RATE_HZ / rate)
    return measure_sound(sound, begins, excerpt.at_s, excerpt.tones, float(np.mean(np.square(inner))), chance)


def _find_true_peak(samples: Samples) -> float:
    between = soxr.resample(samples, 1, _OVERSAMPLING, quality="HQ")
    return max(float(np.abs(samples).max(initial=0.0)), float(np.abs(between).max(initial=0.0)))
