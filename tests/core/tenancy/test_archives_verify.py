"""What Core exports is what the SDK verifies; the two share no code."""

import io

import pytest
from soundmark_sdk import ArchiveRejected, KeySet, read_key_history, verify_archive
from support.api.core_client import Api
from support.database.rival import Rival
from support.tenancy.tenant import Tenant, make_second_project, make_tenant


async def fill(tenant: Tenant) -> None:
    """Make some of everything in a project: three Codes, one of them measured and one revoked."""
    campaign = await tenant.make_campaign("Tonight")
    integration = await tenant.make_integration(name="Studio")
    await tenant.make_code(audience={"enabled": True, "integration_id": integration["id"]}, issuer='"Nördlicht" 🎙')
    await tenant.make_code(campaign_id=campaign["id"])
    await tenant.revoke((await tenant.make_code())["xr_id"])
    await tenant.make_key(scopes=["codes:read"], name="Playout")


async def export(tenant: Tenant, kind: str) -> bytes:
    path = {"organization": f"organizations/{tenant.organization_id}", "project": f"projects/{tenant.project_id}"}[kind]
    answer = await tenant.api.get(f"/v1/{path}/export", params=tenant.query if kind == "project" else {})
    assert answer.status == 200, answer.body
    return answer.body


@pytest.fixture
async def keys(api: Api) -> KeySet:
    """The published keys."""
    return read_key_history((await api.get("/v1/keys/history")).body)


async def test_an_organisation_archive_is_verified(tenant: Tenant, rival: Rival, keys: KeySet) -> None:
    await fill(tenant)
    await fill(await make_second_project(tenant))
    await tenant.make_member(rival, "somebody", "billing")
    verified = verify_archive(io.BytesIO(await export(tenant, "organization")), keys)
    assert (verified.subject_id, verified.keys_are_trusted) == (tenant.organization_id, True)
    assert verified.counts == {
        "members": 2,
        "projects": 2,
        "campaigns": 2,
        "codes": 6,
        "api_keys": 2,
        "audience_integrations": 2,
    }


async def test_a_project_archive_is_verified_also_without_codes(tenant: Tenant, api: Api, keys: KeySet) -> None:
    await fill(tenant)
    archive = await export(tenant, "project")
    assert verify_archive(io.BytesIO(archive), keys).counts["codes"] == 3
    assert not verify_archive(io.BytesIO(archive)).keys_are_trusted
    empty = await make_tenant(api)
    assert verify_archive(io.BytesIO(await export(empty, "project")), keys).subject_id == empty.project_id


async def test_an_altered_archive_is_rejected(tenant: Tenant, keys: KeySet) -> None:
    await fill(tenant)
    altered = (await export(tenant, "project")).replace(b"Tonight", b"Tomorrow")
    with pytest.raises(ArchiveRejected, match="digest_mismatch"):
        verify_archive(io.BytesIO(altered), keys)
