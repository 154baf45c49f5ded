"""A deletion while Audience fails: nothing is deleted in Core, and a repetition completes it later."""

import pytest
from support.api.core_client import Api
from support.audience.faults import KINDS, core_beside, failing_audience
from support.database.rival import Rival
from support.outside.misbehaving_server import answer as answering
from support.outside.misbehaving_server import misbehaving_server
from support.tenancy.closures import SUBJECTS, fill, organization_of
from support.tenancy.tenant import Tenant

from soundmark.kit.crypto.secret import Secret


@pytest.mark.parametrize("kind", SUBJECTS)
@pytest.mark.parametrize("fault", KINDS)
async def test_without_audience_nothing_is_deleted(
    tenant: Tenant, rival: Rival, database_url: Secret, kind: str, fault: str
) -> None:
    """The subject stays marked, its Codes resolve, and a repetition completes it once Audience is back."""
    measured = await fill(tenant)
    subject = SUBJECTS[kind](tenant)
    counts = "SELECT (SELECT count(*) FROM codes), (SELECT count(*) FROM api_keys), (SELECT count(*) FROM members)"
    before = await rival.rows(counts)
    async with failing_audience(fault) as url, core_beside(url, database_url, tenant.api.clock) as core:
        answer = await SUBJECTS[kind](Tenant(core, tenant.organization_id, tenant.project_id)).delete()

    assert (answer.status, answer.code) == (503, "audience_unavailable")
    assert await rival.rows(counts) == before
    assert (await tenant.api.resolve(measured.code["broadcast_token"])).status == 200
    assert (await subject.certificate())["deleted"]["audience"]["events"] == 1


async def test_a_purge_that_leaves_rows_is_not_believed(
    tenant: Tenant, rival: Rival, database_url: Secret, api: Api
) -> None:
    await tenant.give_cell(rival)
    none = '{"integrations": 0, "events": 0, "integrity_days": 0, "legacy_days": 0, "spent_proofs": 0}'
    some = none.replace('"events": 0', '"events": 1')
    for remaining in (some, '{"integrations": -1}', '"0"'):
        behaviour = answering(f'{{"deleted": {none}, "remaining": {remaining}}}'.encode())
        async with (
            misbehaving_server(behaviour) as server,
            core_beside(server.url, database_url, tenant.api.clock) as core,
        ):
            refused = await organization_of(Tenant(core, tenant.organization_id, tenant.project_id)).delete()
        assert (refused.status, refused.code) == (503, "audience_unavailable")
    assert await rival.rows("SELECT phase FROM closures") == [("requested",)]
    assert (await api.get("/v1/organizations")).json["data"][0]["id"] == tenant.organization_id
