"""The published vectors of the decoder mean what docs/vectors/README.md says, and the SDK's decoder agrees."""

import json
from typing import Any

import numpy as np
import pytest
from sound_vectors import VECTORS, files, make_sound
from soundmark_sdk.hearing import hear_samples
from soundmark_sdk.hearing.likelihoods import find_evidence, find_likelihoods
from soundmark_sdk.hearing.ordered_statistics import decode
from soundmark_sdk.hearing.power_sums import read_frame
from soundmark_sdk.hearing.tone_grid import grid_of


def read_cases(name: str) -> list[Any]:
    cases: list[Any] = json.loads((VECTORS / f"sound-{name}-v1.json").read_text(encoding="ascii"))["cases"]
    assert cases
    return cases


def test_spectra_give_the_published_likelihoods() -> None:
    for case in read_cases("likelihoods"):
        found = find_likelihoods(np.array(case["tones"]), np.array(case["between"]), grid_of(case["protocol"]))
        assert found == pytest.approx(np.array(case["likelihoods"]), rel=0.01), case["name"]
        evidence, known_bits = find_evidence(found)
        assert known_bits == pytest.approx(case["known_bits"], abs=0.1), case["name"]
        assert evidence.max(axis=1) == pytest.approx(np.array(case["largest_bits"]), abs=0.1), case["name"]


def test_likelihoods_give_the_published_tokens() -> None:
    for case in read_cases("decoding"):
        evidence, known_bits = find_evidence(np.array(case["likelihoods"]))
        assert known_bits == pytest.approx(case["known_bits"], abs=0.1), case["name"]
        decoded, _ = decode(evidence, enough_bits=case["enough_bits"])
        if case["token"] is None:
            assert decoded is None or decoded.evidence_bits < case["enough_bits"], case["name"]
        else:
            assert decoded is not None, case["name"]
            assert f"brd_{decoded.token_text}" == case["token"], case["name"]
            assert decoded.evidence_bits == pytest.approx(case["evidence_bits"], abs=0.1), case["name"]


def test_half_bytes_are_corrected_to_the_published_tokens() -> None:
    for case in read_cases("correction"):
        letters = read_frame(np.array(case["values"]), np.array(case["clarities"]))
        assert (letters and f"brd_{letters}") == case["token"], case["name"]


def test_sounds_give_the_published_tokens() -> None:
    for case in read_cases("hearing"):
        samples = make_sound(case)
        assert [frame.token for frame in hear_samples(samples, 48_000)] == case["tokens"], case["name"]


def test_the_generator_describes_the_published_cases() -> None:
    for name, text in files().items():
        made, stored = (json.loads(each)["cases"] for each in (text, (VECTORS / name).read_text(encoding="ascii")))
        assert [case["name"] for case in made] == [case["name"] for case in stored], name
        assert [case.get("token", case.get("tokens")) for case in made] == [
            case.get("token", case.get("tokens")) for case in stored
        ], "run .venv/bin/python tests/sound_vectors.py"
