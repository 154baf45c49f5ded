"""Changes while an audio bundle is rendered: it is checked again before its first byte is sent."""

from typing import IO

import pytest
from support.api.core_client import Api
from support.codes.bundles import make_codes, refused, request_bundle
from support.database.rival import Rival
from support.tenancy.tenant import Tenant, make_second_project

# Like the API: it locks the row against everybody who holds it, and then changes it.
REVOKED_KEY = (
    "WITH held AS (SELECT id FROM api_keys FOR UPDATE)"
    " UPDATE api_keys k SET revoked_at = k.created_at FROM held WHERE k.id = held.id"
)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("UPDATE codes SET revoked_at = issued_at WHERE xr_id = %s", (409, "code_not_active")),
        ("DELETE FROM codes WHERE xr_id = %s", (404, "code_not_found")),
        (
            "UPDATE codes c SET project_id = p.id FROM projects p WHERE p.id <> c.project_id AND c.xr_id = %s",
            (404, "code_not_found"),
        ),
        ("DELETE FROM projects WHERE id = (SELECT project_id FROM codes WHERE xr_id = %s)", (404, "project_not_found")),
    ],
    ids=["revoked", "deleted", "moved", "project deleted"],
)
async def test_a_change_of_the_selection_during_rendering_counts(
    tenant: Tenant, rival: Rival, bundle_files: list[IO[bytes]], change: str, problem: tuple[int, str]
) -> None:
    """Another connection holds the caller's row, so the finished bundle waits for the second check."""
    await make_second_project(tenant)
    selection = await make_codes(tenant, 3)
    async with rival.holding("SELECT 1 FROM members FOR UPDATE"):
        bundling = await rival.while_waiting(request_bundle(tenant, selection))
        assert [file.closed for file in bundle_files] == [False], "it is rendered"
        await rival.run(change, selection[1])
    assert refused(await bundling) == problem
    assert [file.closed for file in bundle_files] == [True]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("UPDATE members SET role = 'billing'", (403, "forbidden")),
        ("DELETE FROM members", (404, "organization_not_found")),
    ],
    ids=["demoted", "removed"],
)
async def test_a_change_of_the_caller_during_rendering_counts(
    tenant: Tenant, rival: Rival, bundle_files: list[IO[bytes]], change: str, problem: tuple[int, str]
) -> None:
    selection = await make_codes(tenant, 3)
    async with rival.committing(change):
        bundling = await rival.while_waiting(request_bundle(tenant, selection))
        assert [file.closed for file in bundle_files] == [False], "it is rendered"
    assert refused(await bundling) == problem
    assert [file.closed for file in bundle_files] == [True]


async def test_a_code_that_expires_during_rendering_refuses_the_bundle(
    api: Api, tenant: Tenant, rival: Rival, bundle_files: list[IO[bytes]]
) -> None:
    selection = await make_codes(tenant, 2, lifetime_s=60)
    async with rival.holding("SELECT 1 FROM members FOR UPDATE"):
        bundling = await rival.while_waiting(request_bundle(tenant, selection))
        api.clock.advance(seconds=60)
    assert refused(await bundling) == (409, "code_not_active")
    assert [file.closed for file in bundle_files] == [True]


async def test_a_key_revoked_during_rendering_gets_no_bundle(
    tenant: Tenant, rival: Rival, bundle_files: list[IO[bytes]]
) -> None:
    selection = await make_codes(tenant, 2)
    server = tenant.with_key(await tenant.make_key(scopes=["codes:read"]))
    assert (await request_bundle(server, selection)).status == 200  # This use is recorded.
    async with rival.committing(REVOKED_KEY):
        bundling = await rival.while_waiting(request_bundle(server, selection))
        assert not bundle_files[-1].closed, "it is rendered"
    assert refused(await bundling) == (401, "unauthenticated")
    assert all(file.closed for file in bundle_files)


async def test_a_database_that_goes_away_during_rendering_ends_the_bundle(
    tenant: Tenant, rival: Rival, bundle_files: list[IO[bytes]]
) -> None:
    selection = await make_codes(tenant, 2)
    async with rival.holding("SELECT 1 FROM members FOR UPDATE"):
        bundling = await rival.while_waiting(request_bundle(tenant, selection))
        await rival.kill_waiting_sessions()
        assert refused(await bundling) == (503, "database_unavailable")
    assert [file.closed for file in bundle_files] == [True]
