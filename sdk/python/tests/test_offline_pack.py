"""An offline pack answers while it and the Code last, unless a newer pack leaves the Code out."""

from copy import deepcopy
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, Final

import pytest
from soundmark_sdk import (
    CertificateRejected,
    Intent,
    KeySet,
    OfflinePack,
    OfflineResolution,
    find_in_packs,
    read_key_history,
    verify_offline_pack,
)
from soundmark_sdk.offline_pack import PACK_BYTES_MAX
from soundmark_sdk.verification import digest_token

from .archives import make_historic_jwk
from .issuer import NOW, Issuer, Json, compact, timestamp

KEYS: Final[KeySet] = read_key_history(compact({"keys": [make_historic_jwk(Issuer(), status="retired")]}))
TOKENS: Final = tuple(f"brd_{number:016}" for number in range(3))
CAMPAIGN: Final = "cmp_0123456789abcdefABCDEF"
LIFE: Final = timedelta(hours=6)
INTENT: Final[Json] = {"type": "link", "action": "open", "resource": {"url": "https://example.org/tonight"}}


def make_codes(*numbers: int, expires_at: datetime = NOW + timedelta(days=9)) -> list[Json]:
    return [
        {
            "xr_id": f"xr_{number:022}",
            "token_digest": digest_token(TOKENS[number]),
            "intent": INTENT,
            "expires_at": timestamp(expires_at),
        }
        for number in numbers
    ]


def make_document(**changes: Any) -> Json:
    return {
        "version": 1,
        "format": "svc-offline-pack-v1",
        "pack_id": "opk_0123456789abcdefABCDEF",
        "project_id": "prj_0123456789abcdefABCDEF",
        "campaign_id": None,
        "issued_at": timestamp(NOW),
        "valid_until": timestamp(NOW + LIFE),
        "codes": make_codes(0, 1),
        "key_id": "key-2026-11",
        **changes,
    }


def make_pack(at: datetime = NOW, **changes: Any) -> OfflinePack:
    times = {"issued_at": timestamp(at), "valid_until": timestamp(at + LIFE)}
    return verify_offline_pack(Issuer().signed(make_document(**{**times, **changes})), KEYS)


def reject(document: bytes | Json) -> tuple[str, str]:
    """Return the failure and the location with which a pack is rejected."""
    with pytest.raises(CertificateRejected) as rejected:
        verify_offline_pack(document, KEYS)
    return rejected.value.failure, rejected.value.location


def test_a_genuine_pack_answers_for_the_codes_that_it_names() -> None:
    signed = Issuer().signed(make_document(campaign_id=CAMPAIGN, codes=deepcopy(make_codes(0, 1))))
    pack = verify_offline_pack(compact(signed), KEYS)
    assert pack == verify_offline_pack(MappingProxyType(signed), KEYS)
    assert (pack.campaign_id, pack.codes_count, pack.valid_until) == (CAMPAIGN, 2, NOW + LIFE)
    intent = Intent("link", "open", deepcopy(INTENT["resource"]))
    expected = OfflineResolution(f"xr_{1:022}", intent, NOW, NOW + LIFE, pack.pack_id, "key-2026-11")
    assert pack.find(TOKENS[1], NOW) == expected
    changed = pack.find(TOKENS[1], NOW)
    assert changed is not None
    changed.intent.resource["url"] = "https://example.com/elsewhere"
    assert pack.find(TOKENS[1], NOW) == expected, "who changes an answer does not change the pack"
    for token in (TOKENS[2], "brd_", "", "é" * 20):
        assert pack.find(token, NOW) is None
    signed["codes"][1]["intent"]["resource"]["url"] = "https://example.com/elsewhere"
    assert pack.find(TOKENS[1], NOW) == expected, "who changes the document does not change the pack"


def test_it_answers_until_it_or_the_code_ends_and_not_before_it_was_made(subtests: pytest.Subtests) -> None:
    instant, life = timedelta(milliseconds=1), timedelta(hours=1)
    pack = make_pack(codes=[*make_codes(0), *make_codes(1, expires_at=NOW + life)])
    for now, answering in (
        (NOW - timedelta(minutes=2) - instant, set()),
        (NOW - timedelta(minutes=2), {0, 1}),
        (NOW + life - instant, {0, 1}),
        (NOW + life, {0}),
        (NOW + LIFE - instant, {0}),
        (NOW + LIFE, set()),
    ):
        with subtests.test(now=now):
            assert {number for number in (0, 1) if pack.find(TOKENS[number], now)} == answering
    ending = pack.find(TOKENS[1], NOW)
    assert ending is not None
    assert ending.valid_until == NOW + life


def test_a_newer_pack_that_leaves_the_code_out_silences_the_older(subtests: pytest.Subtests) -> None:
    """One of the whole project, or of the same campaign; even if it has ended, and whatever the order."""
    later = NOW + timedelta(minutes=1)
    empty: Json = {"codes": [], "valid_until": timestamp(later + timedelta(seconds=1))}
    for own, newer, answers in (
        ({"campaign_id": CAMPAIGN}, {**empty, "campaign_id": CAMPAIGN}, False),
        ({"campaign_id": CAMPAIGN}, empty, False),
        ({}, empty, False),
        ({}, {**empty, "campaign_id": CAMPAIGN}, True),
        ({"campaign_id": CAMPAIGN}, {**empty, "campaign_id": CAMPAIGN[:-1] + "G"}, True),
        ({}, {**empty, "project_id": "prj_another"}, True),
    ):
        with subtests.test(own=own, newer=newer):
            packs = [make_pack(**own), make_pack(later, **newer)]
            for known in (packs, packs[::-1]):
                assert (find_in_packs(known, TOKENS[0], later + timedelta(hours=1)) is not None) == answers


def test_the_newest_pack_that_names_the_code_answers() -> None:
    later = NOW + timedelta(minutes=1)
    found = find_in_packs([make_pack(), make_pack(later)], TOKENS[0], later)
    assert found is not None
    assert found.as_of == later
    older = find_in_packs([make_pack(), make_pack(NOW - LIFE, codes=[])], TOKENS[0], later)
    assert older is not None
    assert find_in_packs([], TOKENS[0], NOW) is None


def test_every_byte_changed_is_noticed() -> None:
    text = compact(Issuer().signed(make_document()))
    for place in range(len(text)):
        altered = bytearray(text)
        altered[place] ^= 1
        reject(bytes(altered))


def test_what_breaks_the_contract_is_rejected_even_if_it_is_signed(subtests: pytest.Subtests) -> None:
    first = make_codes(0)[0]
    changed: list[tuple[Json, tuple[str, str]]] = [
        ({name: value}, ("wrong_shape", name))
        for name, value in (
            ("version", 2),
            ("format", "svc-offline-pack-v2"),
            ("pack_id", "dcc_0123456789abcdefABCDEF"),
            ("project_id", "org_1"),
            ("campaign_id", ""),
            ("issued_at", "today"),
            ("codes", None),
            ("codes", make_codes(1, 0)),
            ("codes", make_codes(0, 0)),
            *(("codes", [{**first, member: None}]) for member in first),
            ("codes", [{**first, "more": 1}]),
            ("codes", [{**first, "intent": {**INTENT, "more": 1}}]),
            ("codes", [{**first, "intent": {**INTENT, "resource": {"a": "x" * 16_384}}}]),
        )
    ]
    changed += [
        ({"valid_until": timestamp(NOW)}, ("wrong_times", "valid_until")),
        ({"valid_until": timestamp(NOW + timedelta(days=1, milliseconds=1))}, ("wrong_times", "valid_until")),
        ({"issued_at": "9999-12-31T23:59:59.999Z"}, ("wrong_times", "valid_until")),
        ({"valid_until": "9999-12-31T23:59:59.999Z"}, ("wrong_times", "valid_until")),
    ]
    for changes, expected in changed:
        with subtests.test(changes=changes):
            assert reject(Issuer().signed(make_document(**changes))) == expected
    for name in make_document():
        with subtests.test(missing=name):
            signed = deepcopy(Issuer().signed(make_document()))
            del signed[name]
            assert reject(signed) == ("wrong_shape", name)
    make_pack(valid_until=timestamp(NOW + timedelta(days=1)))


def test_another_key_or_a_text_that_is_too_long_is_rejected() -> None:
    assert reject({**Issuer().signed(make_document()), "key_id": "key-2031-01"}) == ("key_unknown", "key_id")
    assert reject(b" " * (PACK_BYTES_MAX + 1)) == ("malformed", "certificate")
