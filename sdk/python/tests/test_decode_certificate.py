"""A decode certificate says what was measured of a Code; the first thing that is wrong with one is named."""

from copy import deepcopy
from types import MappingProxyType
from typing import Any, Final

import pytest
from soundmark_sdk import CertificateRejected, KeySet, read_key_history, verify_decode_certificate
from soundmark_sdk.decode_certificate import DECODE_CERTIFICATE_BYTES_MAX, MeasuredCodec, MeasuredRepetition

from .archives import ORGANIZATION_ID, make_historic_jwk
from .issuer import NOW, Issuer, Json, compact, timestamp

KEYS: Final[KeySet] = read_key_history(compact({"keys": [make_historic_jwk(Issuer(), status="retired")]}))
DOCUMENT: Final[Json] = {
    "version": 1,
    "certificate_id": "dcc_0123456789abcdefABCDEF",
    "xr_id": "xr_0123456789abcdefABCDEF",
    "organization_id": ORGANIZATION_ID,
    "issued_at": timestamp(NOW),
    "measured": {
        "file_sha256": "0f" * 32,
        "file_name": "Übersicht.wav",
        "duration_ms": 60_000,
        "sample_rate": 48_000,
        "tool": {"name": "soundmark", "version": "0.1.0"},
        "repetitions": [
            {"at_ms": 0, "protocol": 4, "level_db": -12, "margin_db": 7.5, "cutoff_hz": None},
            {"at_ms": 9_000, "protocol": 3, "level_db": None, "margin_db": -1, "cutoff_hz": 18_400},
        ],
        "codecs": [{"name": "mp3", "setting": "192 kbit/s", "heard": 1, "of": 2}],
    },
    "key_id": "key-2026-11",
}


def change(path: str, value: Any) -> Json:
    """Return the document with another value at a place such as `measured.codecs.0.of`; `...` removes it."""
    changed = deepcopy(DOCUMENT)
    *outer, last = (int(part) if part.isdecimal() else part for part in path.split("."))
    holder: Any = changed
    for part in outer:
        holder = holder[part]
    if value is ...:
        del holder[last]
    else:
        holder[last] = value
    return changed


def reject(certificate: bytes | Json) -> tuple[str, str]:
    """Return the failure and the location with which a certificate is rejected."""
    with pytest.raises(CertificateRejected) as rejected:
        verify_decode_certificate(certificate, KEYS)
    return rejected.value.failure, rejected.value.location


def test_a_genuine_certificate_states_what_was_measured() -> None:
    signed = Issuer().signed(DOCUMENT)
    verified = verify_decode_certificate(compact(signed), KEYS)
    assert verified == verify_decode_certificate(MappingProxyType(signed), KEYS)
    assert (verified.xr_id, verified.organization_id, verified.issued_at) == (DOCUMENT["xr_id"], ORGANIZATION_ID, NOW)
    assert (verified.file_name, verified.file_sha256) == ("Übersicht.wav", "0f" * 32)
    assert (verified.tool_name, verified.tool_version) == ("soundmark", "0.1.0")
    assert verified.repetitions[1] == MeasuredRepetition(9_000, 3, None, -1, 18_400)
    assert verified.codecs == (MeasuredCodec("mp3", "192 kbit/s", 1, 2),)


def test_every_byte_changed_is_noticed() -> None:
    text = compact(Issuer().signed(DOCUMENT))
    for place in range(len(text)):
        altered = bytearray(text)
        altered[place] ^= 1
        reject(bytes(altered))


MISFITS: Final[list[tuple[str, Any, str]]] = [
    ("version", 2, "version"),
    ("certificate_id", "dct_0123456789abcdefABCDEF", "certificate_id"),
    ("issued_at", "today", "issued_at"),
    ("measured.more", 1, "measured"),
    *(("measured.file_name", name, "measured.file_name") for name in ("a/b", "..", ".", "a\x85b", "")),
    ("measured.duration_ms", 1.0, "measured.duration_ms"),
    ("measured.sample_rate", True, "measured.sample_rate"),
    ("measured.repetitions", [], "measured.repetitions"),
    ("measured.repetitions.0.margin_db", 201, "measured.repetitions"),
    ("measured.repetitions.0.level_db", False, "measured.repetitions"),
    ("measured.repetitions.1.protocol", 2, "measured.repetitions"),
    ("measured.repetitions.1.more", 2, "measured.repetitions"),
    ("measured.codecs.0.of", 0, "measured.codecs"),
    ("measured.codecs.0", None, "measured.codecs"),
]


def test_what_breaks_the_contract_is_rejected_even_if_it_is_signed(subtests: pytest.Subtests) -> None:
    required = [(path, ..., path) for path in DOCUMENT] + [
        (f"measured.{name}", ..., f"measured.{name}") for name in DOCUMENT["measured"]
    ]
    for path, value, location in [*MISFITS, *required]:
        with subtests.test(path=path, value=value):
            assert reject(Issuer().signed({"key_id": "key-2026-11", **change(path, value)}) if path != "key_id"
                          else {**change(path, value), "signature": "A" * 86}) == ("wrong_shape", location)  # fmt: skip


def test_another_key_or_a_text_that_is_too_long_is_rejected() -> None:
    assert reject({**Issuer().signed(DOCUMENT), "key_id": "key-2031-01"}) == ("key_unknown", "key_id")
    assert reject(b" " * (DECODE_CERTIFICATE_BYTES_MAX + 1)) == ("malformed", "certificate")
    assert reject(b"[]") == ("wrong_shape", "certificate")
