"""`soundmark_sdk.client` issues Codes at the real Core, over connections that break."""

import asyncio
from pathlib import Path

import pytest
from soundmark_sdk.client import (
    ApiProblem,
    AsyncClient,
    Client,
    FileRecoveryStore,
    TenantNotGiven,
)
from support.codes.issuance_queue import IssuanceQueue
from support.database.rival import Rival
from support.processes.faulty_proxy import Fault, FaultyProxy

from soundmark.embedded.postgres import RunningCluster

from .conftest import Tenant, World


@pytest.mark.parametrize("fault", ["request lost", "answer lost", "half an answer"])
async def test_a_code_is_issued_once_over_a_connection_that_breaks(
    world: World, tenant: Tenant, tmp_path: Path, fault: Fault
) -> None:
    key = await tenant.client.api_keys.create(
        {"codes:read", "codes:write"},
        expires_in_days=1,
        organization_id=tenant.organization_id,
        project_id=tenant.project_id,
    )
    with FaultyProxy(world.url, fault, fault) as proxy, FileRecoveryStore(tmp_path / "recovery") as store:
        async with AsyncClient(proxy.url, key.secret, recovery=store) as client:
            code = await client.codes.issue(tenant.issue_request())
            assert store.list_unsettled() == ()
    usage = await tenant.client.usage(organization_id=tenant.organization_id)
    assert usage.codes.issued == 1
    assert await tenant.client.codes.show(code.xr_id, organization_id=tenant.organization_id) == code
    sent = [passed for passed in proxy.passed if passed.path.startswith("/v1/codes")]
    assert len({passed.headers["idempotency-key"] for passed in sent}) == 1
    assert len({passed.body for passed in sent}) == 1


async def test_a_repeat_while_the_first_is_still_running_gets_its_answer(
    world: World, tenant: Tenant, cluster: RunningCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client timed out, asked for a receipt, found none, and sent the request again."""
    queue = IssuanceQueue(monkeypatch)
    rival = Rival(cluster.superuser_url_of("core_spare"))
    request = tenant.issue_request()
    async with AsyncClient(world.url, world.issuer.token("owner"), timeout_s=2) as client:
        async with rival.holding("SELECT 1 FROM code_entitlements FOR UPDATE"):
            issuing = asyncio.create_task(client.codes.issue(request))
            await rival.until_someone_waits()
            await queue.until_entered(2)
        code = await issuing
        assert await client.codes.list_unsettled() == ()
    assert [one.xr_id async for one in tenant.client.codes.list(organization_id=tenant.organization_id)] == [code.xr_id]
    assert (await tenant.client.usage(organization_id=tenant.organization_id)).codes.issued == 1


async def test_an_exhausted_quota_says_when_to_retry(tenant: Tenant) -> None:
    await tenant.client.codes.issue_batch(tenant.issue_request(), 100)
    with pytest.raises(ApiProblem) as failure:
        await tenant.client.codes.issue(tenant.issue_request())
    assert (failure.value.status, failure.value.code) == (429, "quota_exceeded")
    assert failure.value.retry_after_s is not None
    assert failure.value.retry_after_s > 0
    verdict = await tenant.client.codes.dry_run(tenant.issue_request())
    assert (verdict.would_issue, verdict.code, verdict.quota_remaining) == (False, "quota_exceeded", 0)


async def test_a_server_key_needs_no_ids(world: World, tenant: Tenant) -> None:
    """The service knows where a key belongs; a person has to name it."""
    ids = {"organization_id": tenant.organization_id, "project_id": tenant.project_id}
    key = await tenant.client.api_keys.create({"codes:read", "codes:write"}, **ids)
    request = tenant.issue_request(organization_id=None, project_id=None)
    async with AsyncClient(world.url, key.secret) as client:
        code = await client.codes.issue(request)
        assert (code.organization_id, code.project_id) == tuple(ids.values())
        assert [one.xr_id async for one in client.codes.list()] == [code.xr_id]
        assert [one async for one in client.campaigns.list()] == []
        assert (await client.codes.revoke_batch([code.xr_id])).revoked_count == 1
        with pytest.raises(ApiProblem) as elsewhere:
            await client.codes.page(organization_id="org_" + "0" * 22)
        assert elsewhere.value.code == "organization_not_found"
    with pytest.raises(TenantNotGiven):
        await tenant.client.codes.issue(request)


async def test_a_refused_credential_is_a_problem_that_does_not_repeat_it(world: World) -> None:
    credential = "xak_" + "n" * 43
    with Client(world.url, credential) as client, pytest.raises(ApiProblem) as failure:
        client.usage(organization_id="org_0000000000000000000000")
    assert (failure.value.status, failure.value.code) == (401, "unauthenticated")
    assert credential not in str(failure.value)
