"""`POST /v1/codes/audio-bundle`: a stored ZIP of active Codes of one project."""

import zipfile
from typing import IO, Any

import pytest
from support.api.core_client import Api
from support.codes.bundles import UNKNOWN_CODE, make_codes, open_bundle, pointers, refused, request_bundle
from support.database.rival import Rival
from support.tenancy.tenant import Tenant, make_second_project, make_tenant


async def test_a_bundle_holds_the_wavs_in_the_requested_order(tenant: Tenant, bundle_files: list[IO[bytes]]) -> None:
    """Each file equals the one for the Code alone, and is stored without compression."""
    selection = await make_codes(tenant, 7)
    selection.sort(key=lambda xr_id: xr_id[::-1])
    archive = open_bundle(await request_bundle(tenant, selection))
    assert archive.namelist() == [f"{xr_id}.wav" for xr_id in selection]
    assert {entry.compress_type for entry in archive.infolist()} == {zipfile.ZIP_STORED}
    assert archive.testzip() is None
    for xr_id in selection:
        alone = await tenant.api.get(f"/v1/codes/{xr_id}/audio", params=tenant.query)
        assert archive.read(f"{xr_id}.wav") == alone.body
    assert [file.closed for file in bundle_files] == [True]


async def test_the_answer_is_a_file_that_is_not_cached(tenant: Tenant) -> None:
    bundled = await request_bundle(tenant, await make_codes(tenant, 2))
    assert bundled.headers["content-type"] == "application/zip"
    assert bundled.headers["content-disposition"] == f'attachment; filename="codes-{tenant.project_id}.zip"'
    assert bundled.headers["content-length"] == str(len(bundled.body))
    assert bundled.headers["cache-control"] == "no-store"


async def test_the_same_selection_is_the_same_bytes(api: Api, tenant: Tenant) -> None:
    """At any time: the archive contains nothing about the time, the machine or the Codes."""
    selection = await make_codes(tenant, 2)
    first = await request_bundle(tenant, selection)
    api.clock.advance(hours=1)
    assert (await request_bundle(tenant, selection)).body == first.body
    assert (await request_bundle(tenant, selection[::-1])).body != first.body
    assert {(entry.date_time, entry.comment, entry.extra) for entry in open_bundle(first).infolist()} == {
        ((1980, 1, 1, 0, 0, 0), b"", b"")
    }
    assert open_bundle(first).comment == b""
    for text in (b"brd_", b"example.org", b"Radio"):
        assert text not in first.body


@pytest.mark.parametrize("protocol", [3, 4, 5])
async def test_the_requested_protocol_is_used(tenant: Tenant, protocol: int) -> None:
    (xr_id,) = await make_codes(tenant, 1)
    alone = await tenant.api.get(f"/v1/codes/{xr_id}/audio", params={**tenant.query, "protocol": protocol})
    assert open_bundle(await request_bundle(tenant, [xr_id], protocol=protocol)).read(f"{xr_id}.wav") == alone.body
    if protocol == 4:
        assert open_bundle(await request_bundle(tenant, [xr_id])).read(f"{xr_id}.wav") == alone.body


async def test_a_hundred_are_one_bundle(tenant: Tenant, bundle_files: list[IO[bytes]]) -> None:
    selection = await make_codes(tenant, 100)
    archive = open_bundle(await request_bundle(tenant, selection, protocol=5))
    assert archive.namelist() == [f"{xr_id}.wav" for xr_id in selection]
    assert [file.closed for file in bundle_files] == [True]


@pytest.mark.parametrize("protocol", [2, 6, "4"], ids=str)
async def test_another_protocol_is_refused(tenant: Tenant, protocol: Any) -> None:
    assert pointers(await request_bundle(tenant, [UNKNOWN_CODE], protocol=protocol)) == [("body", "/protocol")]


@pytest.mark.parametrize(
    ("xr_ids", "pointer"),
    [([], "/xr_ids"), ([UNKNOWN_CODE, UNKNOWN_CODE], "/xr_ids"), ([f"xr_{n:022}" for n in range(101)], "/xr_ids")],
    ids=lambda value: str(value)[:30],
)
async def test_a_malformed_selection_is_refused(tenant: Tenant, xr_ids: Any, pointer: str) -> None:
    assert pointers(await request_bundle(tenant, xr_ids)) == [("body", pointer)]


@pytest.mark.parametrize("missing", [UNKNOWN_CODE, "xr_\0"])
async def test_a_missing_code_refuses_the_bundle(tenant: Tenant, bundle_files: list[IO[bytes]], missing: str) -> None:
    selection = [*await make_codes(tenant, 1), missing]
    assert refused(await request_bundle(tenant, selection)) == (404, "code_not_found")
    assert bundle_files == [], "nothing is rendered"


@pytest.mark.parametrize("of", ["another organisation", "another project"])
async def test_a_code_of_another_tenant_or_project_refuses_the_bundle(api: Api, tenant: Tenant, of: str) -> None:
    other = await make_tenant(api) if of == "another organisation" else await make_second_project(tenant)
    selection = [*await make_codes(tenant, 1), *await make_codes(other, 1)]
    for asking in (tenant, other):
        assert refused(await request_bundle(asking, selection)) == (404, "code_not_found")


async def test_a_missing_project_is_not_found(tenant: Tenant) -> None:
    """Also a project of another organisation of the caller."""
    selection = await make_codes(tenant, 1)
    asking = Tenant(tenant.api, tenant.organization_id, "prj_" + "A" * 22)
    assert refused(await request_bundle(asking, selection)) == (404, "project_not_found")
    other = await make_tenant(tenant.api)
    foreign = Tenant(tenant.api, tenant.organization_id, other.project_id)
    assert refused(await request_bundle(foreign, selection)) == (404, "project_not_found")


async def test_one_expired_code_among_a_hundred_refuses_the_bundle(
    api: Api, tenant: Tenant, bundle_files: list[IO[bytes]]
) -> None:
    """To the millisecond; until then all of them are bundled."""
    api.clock.freeze()
    selection = await make_codes(tenant, 99)
    selection[77:77] = await make_codes(tenant, 1, lifetime_s=60)
    api.clock.advance(seconds=59.999)
    assert len(open_bundle(await request_bundle(tenant, selection, protocol=5)).namelist()) == 100
    api.clock.advance(seconds=0.001)
    assert refused(await request_bundle(tenant, selection)) == (409, "code_not_active")
    assert len(bundle_files) == 1, "nothing is rendered"


async def test_a_revoked_code_refuses_the_bundle(api: Api, tenant: Tenant) -> None:
    """Both before and after its own expiry."""
    selection = await make_codes(tenant, 2, lifetime_s=60)
    await tenant.revoke(selection[1])
    for seconds in (0, 61):
        api.clock.advance(seconds=seconds)
        assert refused(await request_bundle(tenant, selection)) == (409, "code_not_active")


async def test_missing_codes_are_reported_before_inactive_ones(tenant: Tenant) -> None:
    selection = await make_codes(tenant, 1)
    await tenant.revoke(selection[0])
    assert refused(await request_bundle(tenant, [*selection, UNKNOWN_CODE])) == (404, "code_not_found")


async def test_a_code_that_does_not_verify_is_not_found(tenant: Tenant, rival: Rival) -> None:
    selection = await make_codes(tenant, 3)
    await rival.run(
        "UPDATE broadcasts SET signature = sha512(signature) WHERE token ="
        " (SELECT broadcast_token FROM codes WHERE xr_id = %s)",
        selection[1],
    )
    assert refused(await request_bundle(tenant, selection)) == (404, "code_not_found")
