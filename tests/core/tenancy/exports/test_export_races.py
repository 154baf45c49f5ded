"""What changes while an archive is made: the archive is of one moment, and its caller must be one to the end."""

import asyncio
from typing import IO, Any

import pytest
from starlette.requests import Request
from support.api.core_client import Answer
from support.api.core_settings import core_settings
from support.database.rival import Rival
from support.processes.running_apps import running_core
from support.tenancy.archives import examine, request_organization, request_project
from support.tenancy.tenant import Tenant, make_second_project, make_tenant

from soundmark.kit.crypto.secret import Secret

# Every archive reads campaigns after its snapshot has begun, and before Codes and API keys.
CAMPAIGNS = "LOCK TABLE campaigns IN ACCESS EXCLUSIVE MODE"
# And the caller's authority once the file is whole.
CALLER = "SELECT 1 FROM members WHERE organization_id = %s FOR UPDATE"


def refused(answer: Answer) -> tuple[int, str]:
    return answer.status, answer.code


async def exports_audited(rival: Rival) -> list[tuple[str, str | None, dict[str, Any]]]:
    return await rival.audited("organization.exported") + await rival.audited("project.exported")


async def test_an_archive_is_of_one_moment(tenant: Tenant, rival: Rival) -> None:
    """What others commit while it is made is not in it, and what they take away still is."""
    kept = await tenant.make_code()
    key = await tenant.make_key()
    async with rival.holding(CAMPAIGNS):
        exporting = await rival.while_waiting(request_organization(tenant))
        await rival.run("UPDATE codes SET revoked_at = issued_at")
        await rival.run("UPDATE api_keys SET revoked_at = created_at")
        await rival.run("UPDATE projects SET name = 'Another show'")
        await tenant.make_key()
    archive = examine(await exporting)
    assert [(code["xr_id"], code["status"]) for code in archive["codes"]] == [(kept["xr_id"], "active")]
    assert [(one["id"], one["status"]) for one in archive["api_keys"]] == [(key["id"], "active")]
    assert [project["name"] for project in archive["projects"]] == ["Morning show"]
    later = examine(await request_organization(tenant))
    assert (later["codes"][0]["status"], later["counts"]["api_keys"]) == ("revoked", 2)


async def test_the_export_is_recorded_with_the_digest_of_its_archive(tenant: Tenant, rival: Rival) -> None:
    of_project = examine(await request_project(tenant))
    of_organization = examine(await request_organization(tenant))
    assert await exports_audited(rival) == [
        ("user operator", None, {"digest": of_organization["seal"]["digest"]}),
        ("user operator", tenant.project_id, {"digest": of_project["seal"]["digest"]}),
    ]


@pytest.mark.parametrize("first", [request_organization, request_project])
async def test_one_organisation_has_one_export_at_a_time(tenant: Tenant, rival: Rival, first: Any) -> None:
    """Its projects share it. Another one can begin when the first has ended."""
    other = await make_second_project(tenant)
    async with rival.holding(CAMPAIGNS):
        exporting = await rival.while_waiting(first(tenant))
        for request in (request_organization, request_project):
            answer = await request(other)
            assert refused(answer) == (429, "rate_limited")
            assert int(answer.headers["retry-after"]) > 0
    examine(await exporting)
    examine(await request_project(other))
    assert len(await exports_audited(rival)) == 2


async def test_an_archive_that_waits_for_its_audit_entry_counts_as_an_export(tenant: Tenant, rival: Rival) -> None:
    """Other organisations are not affected."""
    elsewhere = await make_tenant(tenant.api)
    async with rival.holding(CALLER, tenant.organization_id):
        exporting = await rival.while_waiting(request_organization(tenant))
        assert refused(await request_project(tenant)) == (429, "rate_limited")
        examine(await request_organization(elsewhere))
    examine(await exporting)


async def test_two_processes_share_the_limit(
    tenant: Tenant, rival: Rival, database_url: Secret, measuring_url: str
) -> None:
    async with running_core(core_settings(database_url, audience_url=measuring_url), tenant.api.clock) as second:
        beside = Tenant(second, tenant.organization_id, tenant.project_id)
        async with rival.holding(CAMPAIGNS):
            exporting = await rival.while_waiting(request_organization(tenant))
            answer = await request_project(beside)
            assert refused(answer) == (429, "rate_limited")
            assert int(answer.headers["retry-after"]) > 0
        examine(await exporting)
        examine(await request_project(beside))
    assert len(await exports_audited(rival)) == 2


async def test_a_refused_export_makes_way_for_the_next(tenant: Tenant, rival: Rival) -> None:
    await tenant.make_code()
    await rival.run("UPDATE codes SET issuer = 'Somebody else'")
    assert refused(await request_project(tenant)) == (500, "internal_error")
    await rival.run("UPDATE codes SET issuer = 'Radio Nordlicht'")
    examine(await request_project(tenant))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("UPDATE members SET role = 'billing'", (403, "forbidden")),
        ("DELETE FROM members", (404, "organization_not_found")),
    ],
    ids=["demoted", "removed"],
)
@pytest.mark.parametrize("request_archive", [request_organization, request_project])
async def test_a_caller_who_loses_their_authority_meanwhile_gets_nothing(
    tenant: Tenant,
    rival: Rival,
    archive_files: list[IO[bytes]],
    request_archive: Any,
    change: str,
    problem: tuple[int, str],
) -> None:
    async with rival.committing(change):
        exporting = await rival.while_waiting(request_archive(tenant))
        assert [file.closed for file in archive_files] == [False], "it is whole"
    assert refused(await exporting) == problem
    assert [file.closed for file in archive_files] == [True]
    assert await exports_audited(rival) == []


async def test_a_project_that_is_deleted_meanwhile_is_not_exported(
    tenant: Tenant, rival: Rival, archive_files: list[IO[bytes]]
) -> None:
    async with rival.holding(CALLER, tenant.organization_id):
        exporting = await rival.while_waiting(request_project(tenant))
        await rival.run("DELETE FROM projects")
    assert refused(await exporting) == (404, "project_not_found")
    assert [file.closed for file in archive_files] == [True]
    assert await exports_audited(rival) == []


async def test_a_database_that_goes_away_meanwhile_ends_the_export(
    tenant: Tenant, rival: Rival, archive_files: list[IO[bytes]]
) -> None:
    async with rival.holding(CAMPAIGNS):
        exporting = await rival.while_waiting(request_organization(tenant))
        await rival.kill_waiting_sessions()
        assert refused(await exporting) == (503, "database_unavailable")
    assert [file.closed for file in archive_files] == [True]
    examine(await request_organization(tenant))


async def test_an_export_that_nobody_waits_for_ends(
    tenant: Tenant, rival: Rival, archive_files: list[IO[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It leaves no file and no audit entry, and makes way for the next."""
    await tenant.make_code()

    async def is_disconnected(_: Request) -> bool:
        return True

    with monkeypatch.context() as patch:
        patch.setattr(Request, "is_disconnected", is_disconnected)
        answer = await tenant.api._client.get(
            f"/v1/organizations/{tenant.organization_id}/export",
            headers={"authorization": f"Bearer {tenant.api.token}"},
        )
    assert answer.status_code == 499
    assert [file.closed for file in archive_files] == [True]
    assert await exports_audited(rival) == []
    examine(await request_organization(tenant))


async def test_exports_beyond_those_at_a_time_wait_for_their_turn(
    tenant: Tenant, rival: Rival, database_url: Secret, measuring_url: str
) -> None:
    """A process with a small pool of connections writes one archive at a time, of any organisation."""
    settings = core_settings(database_url, audience_url=measuring_url, database_pool_size="2")
    async with running_core(settings, tenant.api.clock) as small:
        first, second = [
            Tenant(small, one.organization_id, one.project_id) for one in (tenant, await make_tenant(tenant.api))
        ]
        async with rival.holding(CAMPAIGNS):
            exporting = await rival.while_waiting(request_organization(first))
            waiting = asyncio.create_task(request_organization(second))
            assert refused(await request_project(second)) == (429, "rate_limited"), "it has taken its place"
            assert len(await rival.rows("SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1")) == 1
        examine(await exporting)
        examine(await waiting)


@pytest.mark.parametrize("ending", ["received", "reader gone"])
async def test_an_export_lasts_until_its_archive_was_sent(
    tenant: Tenant, archive_files: list[IO[bytes]], ending: str
) -> None:
    """A reader who takes their time could otherwise fill the disk with one archive after the other."""
    is_sending, may_send = asyncio.Event(), asyncio.Event()
    path = f"/v1/organizations/{tenant.organization_id}/export"
    headers = [(b"authorization", f"Bearer {tenant.api.token}".encode())]

    async def receive() -> dict[str, Any]:
        await may_send.wait()
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.body":
            is_sending.set()
            await may_send.wait()
            if ending == "reader gone":
                raise OSError("gone")

    scope: Any = {
        "type": "http",
        "http_version": "1.1",
        "method": "GET",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": headers,
        "client": ("127.0.0.1", 40000),
        "server": ("core.test", 80),
        "scheme": "http",
        "root_path": "",
    }
    sending = asyncio.create_task(tenant.api.app(scope, receive, send))
    await is_sending.wait()
    assert refused(await request_project(tenant)) == (429, "rate_limited")
    may_send.set()
    await asyncio.wait([sending])
    assert isinstance(sending.exception(), OSError) == (ending == "reader gone")
    assert [file.closed for file in archive_files] == [True]
    examine(await request_project(tenant))
