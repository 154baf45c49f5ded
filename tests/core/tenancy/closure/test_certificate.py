"""Deletion certificates: what they state, and who can read them."""

import json
import re

import pytest
from support.api.core_client import Api
from support.api.published_contract import make_validator
from support.database.rival import Rival
from support.tenancy.closures import SUBJECTS, fill, organization_of, project_of, verify_certificate
from support.tenancy.tenant import Tenant

OF_PROJECT = {
    "campaigns": 1,
    "codes": 2,
    "api_keys": 1,
    "webhook_endpoints": 0,
    "decode_certificates": 1,
    "offline_packs": 1,
}
OF_AUDIENCE = {"integrations": 1, "events": 1, "integrity_days": 0, "legacy_days": 0, "spent_proofs": 1}


@pytest.mark.parametrize("kind", SUBJECTS)
async def test_it_states_what_was_deleted(tenant: Tenant, kind: str) -> None:
    await fill(tenant)
    subject = SUBJECTS[kind](tenant)
    certificate_id = (await subject.preflight()).json["certificate_id"]
    now = tenant.api.clock.freeze()

    certificate = await subject.certificate()

    await verify_certificate(tenant.api, certificate)
    of_core = OF_PROJECT
    if kind == "organization":
        of_core = {
            **OF_PROJECT, "projects": 1, "members": 1, "invitations": 1, "tickets": 0, "checkouts": 0,
            "subscriptions": 0, "audit_entries": certificate["deleted"]["core"]["audit_entries"],
        }  # fmt: skip
        assert of_core["audit_entries"] >= 8
    assert certificate["subject"] == {"type": kind, "id": subject.id, "organization_id": tenant.organization_id}
    assert certificate["deleted"] == {"core": of_core, "audience": OF_AUDIENCE}
    assert certificate["remaining"] == {"core": dict.fromkeys(of_core, 0), "audience": dict.fromkeys(OF_AUDIENCE, 0)}
    assert certificate["certificate_id"] == certificate_id
    assert certificate["requested_at"] == certificate["completed_at"] == now.strftime("%Y-%m-%dT%H:%M:%S.000Z")
    schema = (await tenant.api.get("/schemas/deletion-certificate-v1.json")).json
    make_validator(schema).validate(certificate)


@pytest.mark.parametrize("kind", SUBJECTS)
async def test_of_a_subject_that_never_measured_audience_has_nothing(tenant: Tenant, kind: str) -> None:
    certificate = await SUBJECTS[kind](tenant).certificate()

    assert certificate["deleted"]["audience"] == dict.fromkeys(OF_AUDIENCE, 0)


async def test_anybody_who_knows_the_id_may_read_it(tenant: Tenant) -> None:
    location = (await organization_of(tenant).delete()).headers["location"]
    stranger = tenant.api.other(token=None, peer="203.0.113.7")

    answer = await stranger.get(location)

    assert answer.status == 200
    assert answer.headers["access-control-allow-origin"] == "*"
    assert answer.headers["content-type"] == "application/json"


async def test_the_id_is_not_to_be_guessed(tenant: Tenant) -> None:
    ids = {(await SUBJECTS[kind](tenant).preflight()).json["certificate_id"] for kind in SUBJECTS}

    assert len(ids) == 2
    assert all(re.fullmatch(r"dct_[A-Za-z0-9_-]{22}", each) for each in ids)


@pytest.mark.parametrize("certificate_id", ["dct_" + "A" * 22, "dct_"])
async def test_an_unknown_certificate_is_not_found(api: Api, certificate_id: str) -> None:
    answer = await api.get(f"/v1/deletion-certificates/{certificate_id.replace(chr(0), '%00')}")

    assert (answer.status, answer.code) == (404, "deletion_certificate_not_found")


async def test_there_is_none_before_the_deletion_is_complete(tenant: Tenant) -> None:
    certificate_id = (await organization_of(tenant).preflight()).json["certificate_id"]

    answer = await tenant.api.get(f"/v1/deletion-certificates/{certificate_id}")

    assert answer.code == "deletion_certificate_not_found"


async def test_it_holds_no_personal_data(tenant: Tenant, rival: Rival) -> None:
    await fill(tenant)
    await project_of(tenant).delete()
    await organization_of(tenant).delete()

    for (document,) in await rival.rows("SELECT document FROM deletion_certificates"):
        text = json.dumps(json.loads(document))
        for personal in ("operator", "@", "Radio", "ada"):
            assert personal not in text
