"""The records of an archive: their shape, order, tenant and signatures; the first thing that is wrong is named."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any, Final, get_args

import pytest
from soundmark_sdk import ArchiveFailure

from .archive_verification import UNUSED, iterate_members, reject
from .archives import (
    CREATED_AT,
    EXPORTED_AT,
    OTHER_PROJECT_ID,
    PROJECT_ID,
    ArchiveMaker,
    make_code,
    make_historic_jwk,
    make_organization_archive,
    make_project_archive,
)
from .issuer import Issuer, base64url

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


def test_a_sealed_file_that_breaks_the_contract_is_rejected(subtests: pytest.Subtests) -> None:
    """Even one that the service itself has sealed."""
    for path, value, failure, location in CHANGES:
        with subtests.test(path=path, value=value, failure=failure, location=location):
            archive = make_project_archive()
            if path.endswith(".keys.2"):
                archive.change("verification_keys.keys", [*archive.members["verification_keys"]["keys"], value])
            else:
                archive.change(path, value)
            assert reject(archive) == (failure, location)


def test_an_organisation_archive_holds_only_its_own(subtests: pytest.Subtests) -> None:
    for path, value, failure, location in [
        ("organization.id", "org_another", "foreign_record", "projects[0].organization_id"),
        ("organization.role", "king", "wrong_shape", "organization.role"),
        ("members.0.subject_id", "person-2", "out_of_order", "members[1]"),
        ("members.0.email", None, "wrong_shape", "members[0].email"),
        ("projects.1.organization_id", "org_another", "foreign_record", "projects[1].organization_id"),
        ("projects.0", ..., "foreign_record", "campaigns[0].project_id"),
        ("codes.1.project_id", "prj_unknown", "foreign_record", "codes[1].project_id"),
        ("codes.1.project_id", PROJECT_ID, "altered_code", "codes[1].project_id"),
    ]:
        with subtests.test(path=path, value=value, failure=failure, location=location):
            archive = make_organization_archive()
            archive.change(path, value)
            assert reject(archive) == (failure, location)


def test_a_code_must_agree_with_what_was_signed(subtests: pytest.Subtests) -> None:
    """As if the service had stored one thing and signed another."""
    for name in ["xr_id", "campaign_id", "issuer", "issued_at", "expires_at", "intent", "token_digest"]:
        with subtests.test(name=name):
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


def test_every_failure_is_reached() -> None:
    """By these tests, or those of the seal, of hostile files and of files that change; a new failure needs a case."""
    named = {failure for _, _, failure, _ in CHANGES} | {
        "malformed",
        "seal_missing",
        "wrong_subject",
        "digest_mismatch",
    }
    assert named == set(get_args(ArchiveFailure))
