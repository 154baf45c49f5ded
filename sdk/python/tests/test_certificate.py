"""A deletion certificate proves that nothing is left; the first thing that is wrong with one is named."""

from collections.abc import Iterator
from copy import deepcopy
from datetime import timedelta
from types import MappingProxyType
from typing import Any, Final, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from soundmark_sdk import CertificateFailure, CertificateRejected, KeySet, read_key_history, verify_certificate

from .archives import ORGANIZATION_ID, PROJECT_ID, make_historic_jwk
from .issuer import NOW, Issuer, Json, compact, timestamp

CORE: Final = (
    *("projects", "campaigns", "codes", "api_keys", "members", "invitations", "audit_entries", "tickets"),
    *("checkouts", "subscriptions", "webhook_endpoints"),
)
CORE_OF_PROJECT: Final = ("campaigns", "codes", "api_keys", "webhook_endpoints")
AUDIENCE: Final = ("integrations", "events", "integrity_days", "legacy_days", "spent_proofs")
KEYS: Final[KeySet] = read_key_history(compact({"keys": [make_historic_jwk(Issuer(), status="retired")]}))


def make_document(subject_type: str = "organization") -> Json:
    core = CORE if subject_type == "organization" else CORE_OF_PROJECT
    return {
        "version": 1,
        "certificate_id": "dct_0123456789abcdefABCDEF",
        "subject": {
            "type": subject_type,
            "id": ORGANIZATION_ID if subject_type == "organization" else PROJECT_ID,
            "organization_id": ORGANIZATION_ID,
        },
        "requested_at": timestamp(NOW),
        "completed_at": timestamp(NOW + timedelta(seconds=90)),
        "deleted": {
            "core": {name: number for number, name in enumerate(core)},
            "audience": {name: number for number, name in enumerate(AUDIENCE)},
        },
        "remaining": {"core": dict.fromkeys(core, 0), "audience": dict.fromkeys(AUDIENCE, 0)},
        "key_id": "key-2026-11",
    }


@pytest.mark.parametrize("name", ["decode_certificates", "offline_packs"])
def test_a_later_count_may_be_there(name: str) -> None:
    """Certificates of before this count existed have none."""
    document = make_document()
    for counts in (document["deleted"], document["remaining"]):
        counts["core"] = {**counts["core"], name: 0}
    assert verify_certificate(Issuer().signed(document), KEYS).deleted_in_core[name] == 0
    wrong = Issuer().signed(change(document, f"deleted.core.{name}", -1))
    assert reject(wrong) == ("wrong_shape", f"deleted.core.{name}")
    left = Issuer().signed(change(document, f"remaining.core.{name}", 1))
    assert reject(left) == ("incomplete", f"remaining.core.{name}")


def change(document: Json, path: str, value: Any) -> Json:
    """Return the document with another value at a place such as `deleted.core`; `...` removes it."""
    changed = deepcopy(document)
    *outer, last = path.split(".")
    holder = changed
    for name in outer:
        holder = holder[name]
    if value is ...:
        del holder[last]
    else:
        holder[last] = value
    return changed


def iterate_members(document: Json, path: str = "") -> Iterator[str]:
    for name, value in document.items():
        yield path + name
        if isinstance(value, dict):
            yield from iterate_members(value, f"{path}{name}.")


def reject(certificate: bytes | Json, keys: KeySet = KEYS) -> tuple[str, str]:
    """Return the failure and the location with which a certificate is rejected."""
    with pytest.raises(CertificateRejected) as rejected:
        verify_certificate(certificate, keys)
    failure = rejected.value
    assert str(failure) == f"{failure.failure} at {failure.location}: {failure.explanation}"
    return failure.failure, failure.location


@pytest.mark.parametrize("subject_type", ["organization", "project"])
def test_a_genuine_certificate_states_what_was_deleted(subject_type: str) -> None:
    signed = Issuer().signed(make_document(subject_type))
    verified = verify_certificate(MappingProxyType(signed), KEYS)
    assert verified == verify_certificate(compact(signed), KEYS)
    assert (verified.subject_type, verified.subject_id) == (subject_type, signed["subject"]["id"])
    assert (verified.certificate_id, verified.organization_id) == (signed["certificate_id"], ORGANIZATION_ID)
    assert (verified.requested_at, verified.completed_at) == (NOW, NOW + timedelta(seconds=90))
    deleted = deepcopy(signed["deleted"]["core"])
    signed["deleted"]["core"].clear()  # Who changes the object does not change what was verified.
    assert verified.deleted_in_core == deleted
    assert verified.deleted_in_audience["spent_proofs"] == 4
    assert verified.key_id == "key-2026-11"


@pytest.mark.parametrize("subject_type", ["organization", "project"])
def test_every_member_is_required_signed_and_closed(subject_type: str) -> None:
    genuine = Issuer().signed(make_document(subject_type))
    for path in iterate_members(genuine):
        without = reject(change(genuine, path, ...))
        assert without[0] == "wrong_shape"
        value: Any = genuine
        for name in path.split("."):
            value = value[name]
        if isinstance(value, dict):
            assert reject(change(genuine, f"{path}.more", 0)) == ("wrong_shape", path)
        elif isinstance(value, int):
            assert reject(change(genuine, path, value + 1))[0] in {"wrong_shape", "signature_invalid"}
            for wrong in (-1, True, float(value), str(value), None):
                assert reject(change(genuine, path, wrong)) == ("wrong_shape", path)
    assert reject({**genuine, "more": 0}) == ("wrong_shape", "certificate")


CHANGES: Final[list[tuple[str, Any, str, str]]] = [
    ("version", 2, "wrong_shape", "version"),
    ("certificate_id", "dct_short", "wrong_shape", "certificate_id"),
    ("subject", None, "wrong_shape", "subject"),
    ("subject.type", "person", "wrong_shape", "subject.type"),
    ("subject.type", [], "wrong_shape", "subject.type"),
    ("subject.type", "project", "wrong_shape", "subject.id"),
    ("subject.id", "prj_0123456789abcdefABCDEF", "wrong_shape", "subject.id"),
    ("subject.organization_id", "org_another", "wrong_subject", "subject.organization_id"),
    ("requested_at", "2026-11-20", "wrong_shape", "requested_at"),
    ("completed_at", timestamp(NOW - timedelta(seconds=1)), "wrong_times", "completed_at"),
    ("remaining.core.codes", 1, "incomplete", "remaining.core.codes"),
    ("remaining.audience.spent_proofs", 2**53 - 1, "incomplete", "remaining.audience.spent_proofs"),
    ("remaining.audience.spent_proofs", 2**53, "malformed", "certificate"),
    ("key_id", "key-2031-01", "key_unknown", "key_id"),
    ("key_id", "", "wrong_shape", "key_id"),
]


def test_a_signed_document_that_breaks_the_contract_is_rejected(subtests: pytest.Subtests) -> None:
    """Even one that the service itself has signed. A signature covers no number that a double cannot hold."""
    for path, value, failure, location in CHANGES:
        with subtests.test(path=path, value=value, failure=failure, location=location):
            document = change(make_document(), path, value)
            signature = "A" * 86 if failure == "malformed" else Issuer().signed(document)["signature"]
            assert reject({**document, "signature": signature}) == (failure, location)


def test_another_signature_is_rejected(subtests: pytest.Subtests) -> None:
    for signature, failure in [
        ("A" * 86, "signature_invalid"),
        ("A" * 85 + "B", "wrong_shape"),
        ("A" * 84, "wrong_shape"),
        (7, "wrong_shape"),
    ]:
        with subtests.test(signature=signature, failure=failure):
            assert reject({**make_document(), "signature": signature}) == (failure, "signature")


@pytest.mark.parametrize("pattern", [0x01, 0x80])
def test_every_byte_flipped_once_is_noticed(pattern: int) -> None:
    text = compact(Issuer().signed(make_document()))
    for place in range(len(text)):
        altered = bytearray(text)
        altered[place] ^= pattern
        reject(bytes(altered))


def test_what_is_not_plain_json_is_malformed(subtests: pytest.Subtests) -> None:
    for text in [
        *(b"", b"{", b"\xff", b"[" * 60_000, b'{"version":1,"version":1}', b'{"version":NaN}'),
        *(b'{"version":"' + b"x" * 100_000 + b'"}', b'{"version":"\\udfff"}'),
    ]:
        with subtests.test(repr(text[:20])):
            assert reject(text) == ("malformed", "certificate")


def test_what_is_no_object_has_the_wrong_shape(subtests: pytest.Subtests) -> None:
    for text in [b"[]", b"null", b'"certificate"', b"1"]:
        with subtests.test(text=text):
            assert reject(text) == ("wrong_shape", "certificate")


def test_values_that_json_cannot_express_are_malformed() -> None:
    assert reject({**make_document(), "signature": b"A"}) == ("malformed", "certificate")


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_whatever_stands_in_the_place_of_a_member_never_breaks_the_verifier(data: st.DataObject) -> None:
    genuine = Issuer().signed(make_document())
    leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
    values = st.recursive(leaves, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=5)
    path, value = data.draw(st.sampled_from(list(iterate_members(genuine)))), data.draw(values)
    altered = change(genuine, path, value)
    if altered != genuine:
        reject(altered)


def test_every_failure_is_reached() -> None:
    """By the tests above; a new failure needs a case."""
    assert {failure for _, _, failure, _ in CHANGES} | {"signature_invalid"} == set(get_args(CertificateFailure))
