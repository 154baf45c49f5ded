"""The end of an archive: its keys and its seal, which must be found and must be genuine."""

import pytest

from .archive_verification import MIB, reject, verify
from .archives import CREATED_AT, make_code, make_project_archive
from .issuer import Issuer


def test_another_seal_is_rejected(subtests: pytest.Subtests) -> None:
    for sealed, failure, location in [
        ({"format": "svc-organization-archive-v1"}, "wrong_subject", "format"),
        ({"subject_id": "prj_another"}, "wrong_subject", "project.id"),
        ({"subject_id": "cmp_another"}, "seal_malformed", "seal.subject_id"),
        ({"exported_at": CREATED_AT}, "wrong_subject", "exported_at"),
        ({"exported_at": "2026-11-20 10:00"}, "seal_malformed", "seal.exported_at"),
        ({"digest": "A" * 43}, "digest_mismatch", "seal.digest"),
        ({"digest": "A" * 42 + "B"}, "seal_malformed", "seal.digest"),
        ({"key_id": "key-2031-01"}, "key_unknown", "seal"),
        ({"key_id": "key-2026-05"}, "signature_invalid", "seal"),
        ({"signature": "A" * 86}, "signature_invalid", "seal"),
        ({"signature": "A" * 85 + "B"}, "seal_malformed", "seal.signature"),
        ({"signature": "A" * 86 + "=="}, "seal_malformed", "seal.signature"),
        ({"version": 2}, "seal_malformed", "seal.version"),
        ({"version": True}, "seal_malformed", "seal.version"),
        ({"more": 1}, "seal_malformed", "seal"),
    ]:
        with subtests.test(sealed=sealed, failure=failure, location=location):
            archive = make_project_archive()
            archive.sealed = sealed
            assert reject(archive) == (failure, location)


def test_the_seal_of_another_file_is_rejected() -> None:
    first, second = make_project_archive().write(), make_project_archive(codes=2).write()
    seal = first[first.rindex(b',"seal":') :]
    assert reject(second[: second.rindex(b',"seal":')] + seal) == ("digest_mismatch", "seal.digest")


def test_a_bare_seal_is_no_archive() -> None:
    assert reject(b',"seal":{}}') == ("seal_malformed", "seal.version")


def test_what_is_no_archive_is_rejected(subtests: pytest.Subtests) -> None:
    for name, (text, failure) in {
        "empty": (b"", "seal_missing"),
        "no seal": (b"{}", "seal_missing"),
        "cut": (b',"seal":', "seal_missing"),
        "deep": (b',"seal":' + b"[" * 100_000 + b"}", "seal_malformed"),
        "spaces": (b" " * 3 * MIB, "seal_missing"),
        "commas": (b"," * 3 * MIB, "seal_missing"),
        "seals": (b',"seal":' * 400_000 + b"}", "seal_malformed"),
        "far away": (b',"seal":{' + b" " * 3 * MIB + b"}}", "seal_missing"),
    }.items():
        with subtests.test(name):
            assert reject(text) == (failure, "seal")


def test_looking_for_the_keys_takes_linear_time(subtests: pytest.Subtests) -> None:
    """A pattern that tried each position again would take hours."""
    for text in [b"," + b" " * MIB, (b"," + b" " * 500) * 2000, b',"verification_keys"' * 40_000, b",\n" * (MIB // 2)]:
        with subtests.test(text=text):
            archive = make_project_archive()
            assert reject(archive.seal(b"{" + text)) == ("keys_malformed", "verification_keys")


def test_the_words_of_the_ending_may_stand_in_an_intent() -> None:
    intent = {"type": "t", "action": "a", "resource": {"a": 1, "verification_keys": {"keys": []}, "seal": {}}}
    archive = make_project_archive()
    archive.change("codes.2", make_code(Issuer(), 2, intent=intent))
    text = archive.write_members().replace(b', "seal": {}', b',"seal":{}')
    assert text.count(b',"seal":') == 2
    assert verify(archive.seal(text)).counts["codes"] == 3
