"""Archives are verified without trusting their source; the first thing that is wrong is named."""

import hashlib
import io
import json
import tracemalloc
from collections.abc import Callable, Iterator
from copy import deepcopy
from datetime import timedelta
from pathlib import Path
from typing import Any, BinaryIO, Final, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from soundmark_sdk import ArchiveFailure, ArchiveRejected, KeySet, VerifiedArchive, read_key_history, verify_archive

from .archives import (
    CREATED_AT,
    EXPORTED_AT,
    ORGANIZATION_ID,
    ORGANIZATION_LISTS,
    OTHER_PROJECT_ID,
    PROJECT_ID,
    PROJECT_LISTS,
    ArchiveMaker,
    make_campaign,
    make_code,
    make_historic_jwk,
    make_organization_archive,
    make_project_archive,
)
from .issuer import NOW, Issuer, base64url, compact

MIB: Final = 1024 * 1024
OLDER: Final = Issuer(b"the-signing-key-before-this-one!", "key-2026-05")
UNUSED: Final = Issuer(bytes(32), "key-unused")


def make_history(*issuers: Issuer) -> KeySet:
    return read_key_history(compact({"keys": [make_historic_jwk(issuer) for issuer in issuers]}))


HISTORY: Final = make_history(Issuer(), OLDER, UNUSED)


def verify(text: bytes, keys: KeySet | None = HISTORY) -> VerifiedArchive:
    return verify_archive(io.BytesIO(text), keys)


def reject(archive: ArchiveMaker | bytes, keys: KeySet | None = HISTORY) -> tuple[str, str]:
    """Return the failure and the location with which an archive is rejected."""
    with pytest.raises(ArchiveRejected) as rejected:
        verify(archive if isinstance(archive, bytes) else archive.write(), keys)
    failure = rejected.value
    assert str(failure) == f"{failure.failure} at {failure.location}: {failure.explanation}"
    return failure.failure, failure.location


def test_a_genuine_project_archive_states_its_facts() -> None:
    text = make_project_archive().write()
    verified = verify(text)
    assert (verified.format, verified.subject_id) == ("svc-project-archive-v1", PROJECT_ID)
    assert verified.organization_id == ORGANIZATION_ID
    assert verified.exported_at == NOW + timedelta(hours=1)
    assert verified.counts == {"campaigns": 2, "codes": 3, "api_keys": 2, "audience_integrations": 2}
    assert tuple(verified.counts) == PROJECT_LISTS
    assert (verified.key_id, verified.key_ids) == ("key-2026-11", ("key-2026-05", "key-2026-11"))
    assert verified.digest == base64url(hashlib.sha256(text[: text.rindex(b',"seal":')]).digest())
    assert verified.keys_are_trusted


def test_a_genuine_organisation_archive_states_its_facts() -> None:
    verified = verify(make_organization_archive().write())
    assert (verified.format, verified.subject_id) == ("svc-organization-archive-v1", ORGANIZATION_ID)
    assert tuple(verified.counts) == ORGANIZATION_LISTS
    assert verified.counts["projects"] == verified.counts["codes"] == 2


def test_without_keys_it_is_verified_with_its_own_and_says_so() -> None:
    """Anybody can make such a file, so the result must not look like proof of its origin."""
    forger = Issuer(bytes(31) + b"f", "key-2026-11")
    archive = make_project_archive(codes=0)
    archive.issuer = forger
    archive.change("verification_keys.keys", [forger.jwk()])
    assert not verify(archive.write(), None).keys_are_trusted
    assert reject(archive) == ("signature_invalid", "seal")


@pytest.mark.parametrize("ending", [b"}", b"}\n"])
def test_it_ends_with_at_most_one_newline(ending: bytes, tmp_path: Path) -> None:
    archive = make_project_archive()
    archive.ending = ending
    path = tmp_path / "archive.json"
    path.write_bytes(archive.write())
    assert verify_archive(path, HISTORY) == verify_archive(str(path), HISTORY)
    for longer in (b"\n", b" ", b"\r\n", b"x"):
        assert reject(archive.write().rstrip(b"\n") + b"\n" + longer) == ("seal_missing", "seal")


def test_records_may_lie_on_lines_in_more_than_one_way() -> None:
    """The contract says one record on a line, and not where the brackets and commas are."""
    archive = make_project_archive()
    for old, new in ((b'"codes":[\n', b'"codes":['), (b",\n", b"\n,"), (b"\n]", b"]"), (b'","', b'" ,\t"')):
        text = archive.write_members().replace(old, new)
        assert text != archive.write_members()
        assert verify(archive.seal(text)).counts["codes"] == 3


def test_progress_reaches_the_size_that_the_seal_covers() -> None:
    text = make_project_archive().write()
    progress: list[tuple[int, int]] = []
    verify_archive(io.BytesIO(text), on_progress=lambda *numbers: progress.append(numbers))
    assert [done for done, _ in progress] == sorted({done for done, _ in progress})
    assert {whole for _, whole in progress} == {text.rindex(b',"seal":')}


# What is done to an archive before it is sealed, with the failure and the location.
CHANGES: Final[list[tuple[str, Any, str, str]]] = [
    ("format", "svc-organization-archive-v1", "wrong_shape", "organization"),
    ("format", "svc-project-archive-v2", "seal_malformed", "seal.format"),
    ("organization_id", "org_another", "foreign_record", "project.organization_id"),
    ("organization_id", 7, "wrong_shape", "organization_id"),
    ("organization_id", ..., "wrong_shape", "organization_id"),
    ("project", None, "seal_malformed", "seal.subject_id"),
    ("project.more", 1, "wrong_shape", "project"),
    ("project.name", None, "wrong_shape", "project.name"),
    ("project.deletion_requested_at", "yesterday", "wrong_shape", "project.deletion_requested_at"),
    ("campaigns", {}, "wrong_shape", "campaigns"),
    ("campaigns", ..., "wrong_shape", "campaigns"),
    ("campaigns.1", None, "wrong_shape", "campaigns[1]"),
    ("campaigns.1.status", "open", "wrong_shape", "campaigns[1].status"),
    ("campaigns.1.created_at", "2026-11-19T10:00:30Z", "wrong_shape", "campaigns[1].created_at"),
    ("campaigns.1.created_at", "2026-02-30T10:00:30.500Z", "wrong_shape", "campaigns[1].created_at"),
    ("campaigns.1.id", "xr_0123456789abcdefABCDEF", "wrong_shape", "campaigns[1].id"),
    ("campaigns.1.id", "cmp_" + "0" * 22, "out_of_order", "campaigns[1]"),
    ("campaigns.1.organization_id", "org_another", "foreign_record", "campaigns[1].organization_id"),
    ("campaigns.1.project_id", OTHER_PROJECT_ID, "foreign_record", "campaigns[1].project_id"),
    ("api_keys.0.scopes", [], "wrong_shape", "api_keys[0].scopes"),
    ("api_keys.0.scopes", ["codes:read", "codes:read"], "wrong_shape", "api_keys[0].scopes"),
    ("api_keys.0.scopes", ["codes:all"], "wrong_shape", "api_keys[0].scopes"),
    ("api_keys.0.scopes", [[]], "wrong_shape", "api_keys[0].scopes"),
    ("api_keys.0.secret", "xak_" + "s" * 43, "wrong_shape", "api_keys[0]"),
    ("api_keys.0.project_id", OTHER_PROJECT_ID, "foreign_record", "api_keys[0].project_id"),
    ("api_keys.0.created_at", EXPORTED_AT, "out_of_order", "api_keys[1]"),
    ("audience_integrations.1.retention_days", True, "wrong_shape", "audience_integrations[1].retention_days"),
    ("audience_integrations.1.retention_days", 14.0, "wrong_shape", "audience_integrations[1].retention_days"),
    ("audience_integrations.1.hmac_secret", "xhm_", "wrong_shape", "audience_integrations[1]"),
    ("audience_integrations.0.organization_id", "org_o", "foreign_record", "audience_integrations[0].organization_id"),
    ("codes.2.intent", [], "wrong_shape", "codes[2].intent"),
    ("codes.2.audience_enabled", 1, "wrong_shape", "codes[2].audience_enabled"),
    ("codes.2.signed_code", ..., "wrong_shape", "codes[2].signed_code"),
    ("codes.2.signed_code.version", 1.0, "wrong_shape", "codes[2].signed_code.version"),
    ("codes.2.signed_code.more", 1, "wrong_shape", "codes[2].signed_code"),
    ("codes.2.signed_code.signature", "A" * 85 + "B", "wrong_shape", "codes[2].signed_code.signature"),
    ("codes.2.signed_code.signature", "A" * 86, "signature_invalid", "codes[2].signed_code"),
    ("codes.2.signed_code.issuer", "Somebody else", "signature_invalid", "codes[2].signed_code"),
    ("codes.2.signed_code.key_id", "key-2026-05", "signature_invalid", "codes[2].signed_code"),
    ("codes.2.signed_code.key_id", "key-2031-01", "key_unknown", "codes[2].signed_code"),
    ("codes.2.xr_id", "xr_" + "9" * 22, "altered_code", "codes[2].xr_id"),
    ("codes.2.campaign_id", None, "altered_code", "codes[2].campaign_id"),
    ("codes.2.issuer", "Somebody else", "altered_code", "codes[2].issuer"),
    ("codes.2.issued_at", "2026-11-20T10:00:30.501Z", "altered_code", "codes[2].issued_at"),
    ("codes.2.expires_at", "2036-11-20T10:00:30.501Z", "altered_code", "codes[2].expires_at"),
    ("codes.2.intent.action", "buy", "altered_code", "codes[2].intent"),
    ("codes.2.intent.resource.n.0", 1.0, "altered_code", "codes[2].intent"),
    ("codes.2.audience_enabled", True, "altered_code", "codes[2].audience_enabled"),
    ("codes.2.audience_integration_id", "int_12345678", "altered_code", "codes[2].audience_integration_id"),
    ("codes.2.broadcast_frame", "XRC1:brd_0123456789abcdef", "altered_code", "codes[2].broadcast_frame"),
    ("codes.2.broadcast_token", "brd_0123456789abcdef", "altered_code", "codes[2].broadcast_frame"),
    ("codes.2.project_id", OTHER_PROJECT_ID, "foreign_record", "codes[2].project_id"),
    ("codes.2.organization_id", "org_another", "foreign_record", "codes[2].organization_id"),
    ("counts.codes", 2, "wrong_count", "counts.codes"),
    ("counts.codes", True, "wrong_shape", "counts.codes"),
    ("counts.codes", ..., "wrong_shape", "counts.codes"),
    ("counts.members", 0, "wrong_shape", "counts"),
    ("counts", [], "wrong_shape", "counts"),
    ("counts", ..., "wrong_shape", "counts"),
    ("more", 1, "wrong_shape", "counts"),
    ("verification_keys", [], "keys_malformed", "verification_keys"),
    ("verification_keys", ..., "keys_malformed", "verification_keys"),
    ("verification_keys.keys.0.x", "A" * 42 + "B", "keys_malformed", "verification_keys"),
    ("verification_keys.keys.0.d", "A" * 43, "keys_malformed", "verification_keys"),
    ("verification_keys.keys.1.kid", "key-2026-11", "keys_malformed", "verification_keys"),
    ("verification_keys.keys.1", ..., "wrong_keys", "verification_keys"),
    (
        "verification_keys.keys.0.x",
        base64url(bytes(Issuer(bytes(32)).signing_key.verify_key)),
        "wrong_keys",
        "verification_keys",
    ),
    ("verification_keys.keys.2", make_historic_jwk(UNUSED), "wrong_keys", "verification_keys"),
]


@pytest.mark.parametrize(("path", "value", "failure", "location"), CHANGES, ids=lambda value: str(value)[:40])
def test_a_sealed_file_that_breaks_the_contract_is_rejected(path: str, value: Any, failure: str, location: str) -> None:
    """Even one that the service itself has sealed."""
    archive = make_project_archive()
    if path.endswith(".keys.2"):
        archive.change("verification_keys.keys", [*archive.members["verification_keys"]["keys"], value])
    else:
        archive.change(path, value)
    assert reject(archive) == (failure, location)


@pytest.mark.parametrize(
    ("path", "value", "failure", "location"),
    [
        ("organization.id", "org_another", "foreign_record", "projects[0].organization_id"),
        ("organization.role", "king", "wrong_shape", "organization.role"),
        ("members.0.subject_id", "person-2", "out_of_order", "members[1]"),
        ("members.0.email", None, "wrong_shape", "members[0].email"),
        ("projects.1.organization_id", "org_another", "foreign_record", "projects[1].organization_id"),
        ("projects.0", ..., "foreign_record", "campaigns[0].project_id"),
        ("codes.1.project_id", "prj_unknown", "foreign_record", "codes[1].project_id"),
        ("codes.1.project_id", PROJECT_ID, "altered_code", "codes[1].project_id"),
    ],
)
def test_an_organisation_archive_holds_only_its_own(path: str, value: Any, failure: str, location: str) -> None:
    archive = make_organization_archive()
    archive.change(path, value)
    assert reject(archive) == (failure, location)


@pytest.mark.parametrize(
    "name", ["xr_id", "campaign_id", "issuer", "issued_at", "expires_at", "intent", "token_digest"]
)
def test_a_code_must_agree_with_what_was_signed(name: str) -> None:
    """As if the service had stored one thing and signed another."""
    other = make_code(Issuer(), 7, issuer="S", issued_at=CREATED_AT, expires_at=EXPORTED_AT, campaign_id=None)
    other["signed_code"]["intent"]["action"] = "buy"
    archive = make_project_archive()
    archive.sign_code(2, **{name: other["signed_code"][name]})
    shown = {"token_digest": "broadcast_token"}.get(name, name)
    assert reject(archive) == ("altered_code", f"codes[2].{shown}")


def test_a_code_cannot_expire_before_it_begins() -> None:
    archive = make_project_archive()
    archive.change("codes.2", make_code(Issuer(), 2, expires_at="2026-11-20T10:00:30.500Z"))
    assert reject(archive) == ("altered_code", "codes[2].expires_at")


def iterate_members(document: Any, path: str = "") -> Iterator[str]:
    """Yield the place of every member and item, except for those of which there may be any number."""
    items = document.items() if isinstance(document, dict) else enumerate(document)
    for name, value in items:
        yield path + str(name)
        if isinstance(value, dict | list) and name not in {"resource", "keys", "scopes"}:
            yield from iterate_members(value, f"{path}{name}.")


@pytest.mark.parametrize("make", [make_project_archive, make_organization_archive])
def test_no_member_can_be_left_out(make: Callable[[], ArchiveMaker]) -> None:
    genuine = make()
    for path in iterate_members(genuine.members):
        archive = deepcopy(genuine)
        archive.change(path, ...)
        if path not in {"format", "exported_at"}:  # Without them there is no seal to write.
            reject(archive)


@pytest.mark.parametrize("make", [make_project_archive, make_organization_archive])
def test_members_have_one_order(make: Callable[[], ArchiveMaker]) -> None:
    genuine = make()
    names = list(genuine.members)
    for first in range(len(names) - 1):
        archive = deepcopy(genuine)
        swapped = [*names[:first], names[first + 1], names[first], *names[first + 2 :]]
        archive.members = {name: genuine.members[name] for name in swapped}
        assert reject(archive)[0] in {"wrong_shape", "keys_malformed"}


@pytest.mark.parametrize(
    ("sealed", "failure", "location"),
    [
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
    ],
    ids=str,
)
def test_another_seal_is_rejected(sealed: dict[str, Any], failure: str, location: str) -> None:
    archive = make_project_archive()
    archive.sealed = sealed
    assert reject(archive) == (failure, location)


def test_the_seal_of_another_file_is_rejected() -> None:
    first, second = make_project_archive().write(), make_project_archive(codes=2).write()
    seal = first[first.rindex(b',"seal":') :]
    assert reject(second[: second.rindex(b',"seal":')] + seal) == ("digest_mismatch", "seal.digest")


def test_the_key_of_a_code_must_be_trusted_even_if_the_file_holds_it() -> None:
    assert reject(make_project_archive(), make_history(Issuer())) == ("key_unknown", "codes[0].signed_code")


def test_the_published_keys_are_enough_for_what_they_signed() -> None:
    archive = make_organization_archive()
    assert verify(archive.write(), read_key_history(Issuer().key_set())).keys_are_trusted


# What stands in the place of the first Code, with one failure for all.
HOSTILE: Final = [
    b"{",
    b"[" * 100_000,
    b'{"a":' * 100_000,
    b'{"xr_id":1,"xr_id":1}',
    b'{"xr_id":NaN}',
    b'{"xr_id":Infinity}',
    b'{"xr_id":9007199254740992}',
    b'{"xr_id":1e400}',
    b'{"xr_id":' + b"9" * 10_000 + b"}",
    b'{"xr_id":"\\ud800"}',
    b'{"xr_id":"\xff"}',
    b'{"xr_id":"\x00"}',
    b'{"xr_id":' + b"[" * 65 + b"]" * 65 + b"}",
    b'{"xr_id":"' + b"x" * 2 * MIB + b'"}',
    b" " * 2 * MIB + b"{}",
    b'{"xr_id":\n1}',
    b"",
    b"{},",
    b"{}, {}",
    b"{} {}",
    b"{}]",
    b"// {}",
    b"\xef\xbb\xbf{}",
]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: repr(text[:24]))
@pytest.mark.parametrize("is_first", [True, False], ids=["first", "last"])
def test_a_hostile_record_is_rejected_in_bounded_memory(text: bytes, is_first: bool) -> None:
    archive = make_project_archive()
    record = json.dumps(archive.members["codes"][0 if is_first else 2], ensure_ascii=False).encode()
    hostile = archive.seal(archive.write_members().replace(record, text))
    tracemalloc.start()
    try:
        failure, location = reject(hostile, None)
        assert tracemalloc.get_traced_memory()[1] - len(hostile) < 24 * MIB
    finally:
        tracemalloc.stop()
    assert failure in {"malformed", "wrong_shape"}
    assert location.startswith(("codes[", "api_keys"))


def test_a_bare_seal_is_no_archive() -> None:
    assert reject(b',"seal":{}}') == ("seal_malformed", "seal.version")


@pytest.mark.parametrize(
    ("old", "new", "failure", "location"),
    [
        (b"},\n{", b"}, {", "malformed", "campaigns[1]"),
        (b"},\n{", b"}\n{", "malformed", "campaigns[0]"),
        (b'{"format"', b'{"format" ', None, None),
        (b'{"format"', b'["format"', "malformed", "format"),
        (b'{"format"', b'{7:8,"format"', "malformed", "format"),
        (b'{"format"', b'{"format":7,"format"', "wrong_shape", "format"),
        (b'"exported_at":', b'"exported_at";', "malformed", "exported_at"),
        (b',"verification_keys"', b',"more":1,"verification_keys"', "wrong_shape", "verification_keys"),
        (b',"verification_keys"', b' 1,"verification_keys"', "malformed", "verification_keys"),
        (b',"verification_keys"', b'},"verification_keys"', "malformed", "verification_keys"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_the_text_between_the_records_is_checked_too(
    old: bytes, new: bytes, failure: str | None, location: str | None
) -> None:
    archive = make_project_archive()
    text = archive.seal(archive.write_members().replace(old, new, 1))
    if failure is None:
        assert verify(text).counts["codes"] == 3
    else:
        assert reject(text) == (failure, location)


@pytest.mark.parametrize(
    ("text", "failure"),
    [
        (b"", "seal_missing"),
        (b"{}", "seal_missing"),
        (b',"seal":', "seal_missing"),
        (b',"seal":' + b"[" * 100_000 + b"}", "seal_malformed"),
        (b" " * 3 * MIB, "seal_missing"),
        (b"," * 3 * MIB, "seal_missing"),
        (b',"seal":' * 400_000 + b"}", "seal_malformed"),
        (b',"seal":{' + b" " * 3 * MIB + b"}}", "seal_missing"),
    ],
    ids=["empty", "no seal", "cut", "deep", "spaces", "commas", "seals", "far away"],
)
def test_what_is_no_archive_is_rejected(text: bytes, failure: str) -> None:
    assert reject(text) == (failure, "seal")


@pytest.mark.parametrize(
    "text", [b"," + b" " * MIB, (b"," + b" " * 500) * 2000, b',"verification_keys"' * 40_000, b",\n" * (MIB // 2)]
)
def test_looking_for_the_keys_takes_linear_time(text: bytes) -> None:
    """A pattern that tried each position again would take hours."""
    archive = make_project_archive()
    assert reject(archive.seal(b"{" + text)) == ("keys_malformed", "verification_keys")


def test_the_words_of_the_ending_may_stand_in_an_intent() -> None:
    intent = {"type": "t", "action": "a", "resource": {"a": 1, "verification_keys": {"keys": []}, "seal": {}}}
    archive = make_project_archive()
    archive.change("codes.2", make_code(Issuer(), 2, intent=intent))
    text = archive.write_members().replace(b', "seal": {}', b',"seal":{}')
    assert text.count(b',"seal":') == 2
    assert verify(archive.seal(text)).counts["codes"] == 3


@pytest.mark.parametrize("pattern", [0x01, 0x80])
def test_every_byte_flipped_once_is_noticed(pattern: int) -> None:
    text = make_organization_archive().write()
    for place in range(len(text)):
        altered = bytearray(text)
        altered[place] ^= pattern
        reject(bytes(altered))


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_a_cut_or_stretched_file_is_rejected(data: st.DataObject) -> None:
    text = make_organization_archive().write()
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start, len(text)))
    stuffing = data.draw(st.binary(max_size=3))
    altered = text[:start] + stuffing + text[end:]
    if altered not in {text, text.rstrip(b"\n")} and is_in_front_of_the_seal(text, start):
        reject(altered)


def is_in_front_of_the_seal(text: bytes, start: int) -> bool:
    """Return whether a change there is noticed for certain; a space inside the seal, for example, changes nothing."""
    return start <= text.rindex(b',"seal":')


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_whatever_stands_in_the_place_of_a_member_never_breaks_the_verifier(data: st.DataObject) -> None:
    """Nothing but the named failures leaves it, even if the forger holds the key."""
    leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
    values = st.recursive(leaves, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=5)
    archive = make_project_archive()
    places = [path for path in iterate_members(archive.members) if path not in {"format", "exported_at"}]
    path, value = data.draw(st.sampled_from(places)), data.draw(values)
    archive.change(path, value)
    text = archive.seal(json_with_anything(archive.members))
    try:
        verify(text)
    except ArchiveRejected as rejected:
        assert rejected.failure in get_args(ArchiveFailure)  # noqa: PT017 - it need not be raised


def json_with_anything(members: dict[str, Any]) -> bytes:
    """Return JSON of one record on a line, which may hold NaN and lone surrogates."""
    lists = (
        f'"{name}":' + ("[\n" + ",\n".join(map(json.dumps, value)) + "\n]" if isinstance(value, list) else dump(value))
        for name, value in members.items()
    )
    return ("{" + ",".join(lists)).encode()


def dump(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def test_a_large_archive_needs_little_memory(tmp_path: Path) -> None:
    """A list of a hundred thousand records is read one by one."""
    archive = make_project_archive(codes=0)
    campaigns = [make_campaign(number) for number in range(60_000)]
    archive.change("campaigns", campaigns)
    archive.change("counts.campaigns", len(campaigns))
    path = tmp_path / "large.json"
    path.write_bytes(archive.write())
    assert path.stat().st_size > 16 * MIB
    del archive, campaigns
    tracemalloc.start()
    try:
        assert verify_archive(path).counts["campaigns"] == 60_000
        assert tracemalloc.get_traced_memory()[1] < 8 * MIB
    finally:
        tracemalloc.stop()


class ChangingFile(io.BytesIO):
    """A file that somebody changes after its digest was compared."""

    def readline(self, size: int | None = -1, /) -> bytes:
        return super().readline(size).replace(b"Morning", b"Evening")


def test_a_file_that_changes_meanwhile_is_rejected() -> None:
    file: BinaryIO = ChangingFile(make_project_archive().write())
    with pytest.raises(ArchiveRejected) as rejected:
        verify_archive(file, HISTORY)
    assert (rejected.value.failure, rejected.value.location) == ("digest_mismatch", "seal.digest")


def test_a_pipe_is_refused() -> None:
    class Pipe(io.BytesIO):
        def seekable(self) -> bool:
            return False

    with pytest.raises(ValueError, match="seek"):
        verify_archive(Pipe())


def test_every_failure_is_reached() -> None:
    """By the tests above; a new failure needs a case."""
    named = {failure for _, _, failure, _ in CHANGES} | {
        "malformed",
        "seal_missing",
        "wrong_subject",
        "digest_mismatch",
    }
    assert named == set(get_args(ArchiveFailure))
