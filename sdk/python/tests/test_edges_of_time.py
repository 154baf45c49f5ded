"""No verifier fails on the first or the last time that a timestamp can name, in any member or as the present."""

import contextlib
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

import pytest
from soundmark_sdk import (
    CertificateRejected,
    KeySet,
    read_key_history,
    read_key_set,
    verify_answer,
    verify_certificate,
    verify_decode_certificate,
    verify_offline_pack,
    verify_signed_code,
)
from soundmark_sdk.failures import Unverifiable
from soundmark_sdk.verification import verify_measurement_proof

from . import test_certificate, test_decode_certificate, test_offline_pack
from .archives import make_historic_jwk
from .issuer import NOW, TOKEN, Issuer, Json, compact

FIRST: Final = "0001-01-01T00:00:00.000Z"
LAST: Final = "9999-12-31T23:59:59.999Z"
PRESENTS: Final = (datetime.min.replace(tzinfo=UTC), NOW, datetime.max.replace(tzinfo=UTC))
KEYS: Final[KeySet] = read_key_set(Issuer().key_set())


def verify_history(changes: Json) -> None:
    read_key_history(compact({"keys": [make_historic_jwk(Issuer(), **changes)]}))


def answer(changes: Json, now: datetime) -> None:
    issuer = Issuer()
    verify_answer(compact(issuer.answer_to({**issuer.payload(), **changes})), TOKEN, KEYS, now)


def unsigned(document: Json) -> Json:
    return {name: value for name, value in document.items() if name != "signature"}


def find(changes: Json, now: datetime) -> None:
    pack = verify_offline_pack(Issuer().signed(test_offline_pack.make_document(**changes)), KEYS)
    pack.find(test_offline_pack.TOKENS[0], now)


VERIFIERS: Final[dict[str, tuple[tuple[str, ...], Callable[[Any, Any], Any]]]] = {
    "answer": (("issued_at", "expires_at"), answer),
    "signed code": (
        ("issued_at", "expires_at"),
        lambda changes, now: verify_signed_code(Issuer().signed_code(**changes), KEYS, now=now),
    ),
    "measurement proof": (
        ("issued_at", "expires_at"),
        lambda changes, now: verify_measurement_proof(
            Issuer().signed({**unsigned(Issuer().proof()), **changes}), KEYS, now
        ),
    ),
    "deletion certificate": (
        ("requested_at", "completed_at"),
        lambda changes, _: verify_certificate(
            Issuer().signed({**test_certificate.make_document("organization"), **changes}), KEYS
        ),
    ),
    "decode certificate": (
        ("issued_at",),
        lambda changes, _: verify_decode_certificate(
            Issuer().signed({**test_decode_certificate.DOCUMENT, **changes}), KEYS
        ),
    ),
    "offline pack": (("issued_at", "valid_until"), find),
    "key history": (("activated_at", "superseded_at"), lambda changes, _: verify_history(changes)),
}


@pytest.mark.parametrize("name", VERIFIERS)
def test_the_edges_of_time_are_verified_or_refused(name: str, subtests: pytest.Subtests) -> None:
    members, verify = VERIFIERS[name]
    edges = [dict.fromkeys(members, at) for at in (FIRST, LAST)]
    edges += [{member: at} for member in members for at in (FIRST, LAST)]
    for changes in [*edges, dict(zip(members, (FIRST, LAST), strict=False))]:
        for now in PRESENTS:
            with (
                subtests.test(changes=changes, now=now),
                contextlib.suppress(Unverifiable, CertificateRejected),
            ):
                verify(changes, now)
