"""When an archive is refused: nothing of it is sent, nothing is left behind, and no audit entry says otherwise."""

import tempfile
from pathlib import Path
from typing import IO, Any

import pytest
from prometheus_client import REGISTRY
from structlog.testing import capture_logs
from support.api.core_client import Answer, Api
from support.api.core_settings import core_settings
from support.audience.faults import KINDS, core_beside, failing_audience
from support.database.rival import Rival
from support.processes.running_apps import running_core
from support.tenancy.archives import examine, export_project, request_organization, request_project
from support.tenancy.tenant import Tenant, make_second_project

from soundmark.core.features.tenancy.exports import service
from soundmark.kit.crypto.secret import Secret


def refused(answer: Answer) -> tuple[int, str]:
    return answer.status, answer.code


async def exports_audited(rival: Rival) -> int:
    return len(await rival.audited("organization.exported")) + len(await rival.audited("project.exported"))


def broken_count() -> float:
    return REGISTRY.get_sample_value("soundmark_integrity_failures_total", {"reader": "tenant"}) or 0.0


async def test_an_archive_of_exactly_the_limit_is_made(
    api: Api, tenant: Tenant, rival: Rival, database_url: Secret, measuring_url: str, archive_files: list[IO[bytes]]
) -> None:
    """One byte less, and neither kind of archive is made."""
    api.clock.freeze()
    await tenant.make_code()
    for request, code in (
        (request_project, "project_export_too_large"),
        (request_organization, "organization_export_too_large"),
    ):
        whole = await request(tenant)
        audited = await exports_audited(rival)
        for bytes_max, status in ((len(whole.body), 200), (len(whole.body) - 1, 422)):
            settings = core_settings(database_url, audience_url=measuring_url, export_bytes_max=str(bytes_max))
            async with running_core(settings, api.clock) as limited:
                answer = await request(Tenant(limited, tenant.organization_id, tenant.project_id))
            assert answer.status == status
            if status == 200:
                assert answer.body == whole.body
            else:
                assert answer.code == code
        assert await exports_audited(rival) == audited + 1
    assert all(file.closed for file in archive_files)


@pytest.mark.parametrize("fault", KINDS)
async def test_without_audience_there_is_no_archive(
    tenant: Tenant, rival: Rival, database_url: Secret, archive_files: list[IO[bytes]], fault: str
) -> None:
    await tenant.give_cell(rival)
    async with failing_audience(fault) as url, core_beside(url, database_url, tenant.api.clock) as api:
        beside = Tenant(api, tenant.organization_id, tenant.project_id)
        for request in (request_project, request_organization):
            assert refused(await request(beside)) == (503, "audience_unavailable")
    assert archive_files == [], "no file is opened before Audience has answered"
    assert await exports_audited(rival) == 0


async def test_an_archive_has_a_limit_on_integrations(
    tenant: Tenant, rival: Rival, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "INTEGRATIONS_MAX", 1)
    await tenant.make_integration()
    assert len((await export_project(tenant))["audience_integrations"]) == 1
    await tenant.make_integration()
    assert refused(await request_project(tenant)) == (422, "project_export_too_large")
    assert refused(await request_organization(tenant)) == (422, "organization_export_too_large")
    assert await exports_audited(rival) == 1


async def test_many_integrations_are_read_in_several_calls(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("soundmark.wire.private.integrations.STEP_MAX", 2)
    made = [await tenant.make_integration() for _ in range(5)]
    archive = await export_project(tenant)
    assert {one["id"] for one in archive["audience_integrations"]} == {one["id"] for one in made}


@pytest.mark.parametrize(
    "alteration",
    [
        "UPDATE codes SET issuer = 'Somebody else'",
        "UPDATE broadcasts SET signature = set_byte(signature, 0, 255 - get_byte(signature, 0))",
        "DELETE FROM broadcasts",
    ],
)
async def test_an_altered_code_refuses_the_whole_archive(
    tenant: Tenant, rival: Rival, archive_files: list[IO[bytes]], alteration: str
) -> None:
    """With an alarm. An archive is never shortened, and never holds an intent that nobody signed."""
    await tenant.make_code()
    await rival.run(alteration)
    before = broken_count()
    for request in (request_project, request_organization):
        assert refused(await request(tenant)) == (500, "internal_error")
    assert broken_count() == before + 2
    assert [file.closed for file in archive_files] == [True, True]
    assert await exports_audited(rival) == 0


async def test_a_code_that_a_foreign_key_signed_refuses_the_archive(tenant: Tenant, rival: Rival) -> None:
    """The key's id is in the keyring, but its public half was replaced in the database."""
    await tenant.make_code()
    await rival.run("UPDATE codes SET key_id = 'sig_' || repeat('A', 22)")
    assert refused(await request_project(tenant)) == (500, "internal_error")


async def test_a_full_disk_leaves_nothing_behind(tenant: Tenant, rival: Rival, monkeypatch: pytest.MonkeyPatch) -> None:
    """The operator reads the reason in the log, and the next export works again."""
    opened: list[IO[bytes]] = []

    def open_full(**options: Any) -> IO[bytes]:
        opened.append(Path("/dev/full").open("r+b", **options))  # noqa: SIM115 - the export closes it
        return opened[-1]

    with monkeypatch.context() as patch, capture_logs() as logs:
        patch.setattr(tempfile, "TemporaryFile", open_full)
        for request in (request_project, request_organization):
            answer = await request(tenant)
            assert refused(answer) == (500, "internal_error")
            assert "no disk space" in answer.json["detail"]
    assert [file.closed for file in opened] == [True, True]
    assert [entry["reason"] for entry in logs if entry["event"] == "archive_not_written"] == ["ENOSPC", "ENOSPC"]
    assert await exports_audited(rival) == 0
    examine(await request_project(tenant))


async def test_a_folder_that_cannot_be_written_is_a_full_disk(
    tenant: Tenant, rival: Rival, monkeypatch: pytest.MonkeyPatch
) -> None:
    def open_nothing(**_: Any) -> IO[bytes]:
        raise PermissionError(13, "no")

    with monkeypatch.context() as patch:
        patch.setattr(tempfile, "TemporaryFile", open_nothing)
        assert refused(await request_project(tenant)) == (500, "internal_error")
    assert await exports_audited(rival) == 0
    examine(await request_project(tenant))


async def test_no_secret_and_no_address_of_the_invited_is_in_an_archive(
    tenant: Tenant, rival: Rival, measuring: Rival
) -> None:
    """Whatever was shown once, its digest and its sealed form; idempotency keys; the address of an invited person."""
    other = await make_second_project(tenant)
    key = await tenant.make_key()
    rotated = await tenant.api.post(f"/v1/api-keys/{key['id']}/secret", params=tenant.query)
    integration = await tenant.make_integration()
    rotation = await tenant.change_integration("secret", integration["id"])
    invitation = await tenant.make_invitation(email="secret-guest@example.org")
    idempotency_key = "idempotency-key-of-the-tests"
    headers = {"Idempotency-Key": idempotency_key}
    issued = await tenant.api.post("/v1/codes", json=tenant.code_body(), headers=headers)
    assert issued.status == 201
    secrets = [
        key["secret"],
        rotated.json["secret"],
        integration["hmac_secret"],
        rotation.json["hmac_secret"],
        invitation["secret"],
        invitation["id"],
        "secret-guest@example.org",
        idempotency_key,
    ]
    stored = await rival.rows("SELECT encode(digest, 'hex') FROM api_key_digests")
    stored += await rival.rows("SELECT encode(key_digest, 'hex') FROM issuance_receipts")
    stored += await measuring.rows("SELECT encode(sealed_secret, 'hex') FROM integrations")
    for request in (request_project, request_organization):
        body = (await request(tenant)).body.decode()
        assert [secret for secret in (*secrets, *(row[0] for row in stored)) if secret in body] == []
        assert issued.json["xr_id"] in body
    assert "@" not in (await request_project(other)).body.decode()


@pytest.mark.parametrize(
    ("of_project", "phase", "statuses"),
    [
        (False, "deleting", (409, 409, 409)),
        (True, "deleting", (409, 409, 200)),
        (False, "purged", (200, 200, 200)),
    ],
    ids=["organisation", "project", "not yet"],
)
async def test_what_is_partly_deleted_has_no_archive(
    tenant: Tenant, rival: Rival, *, of_project: bool, phase: str, statuses: tuple[int, ...]
) -> None:
    """The seal would say that an archive is complete which lacks the Codes that are gone already."""
    second = await make_second_project(tenant)
    project_id = tenant.project_id if of_project else None
    await rival.run(
        "INSERT INTO closures (organization_id, subject_id, project_id, certificate_id, operation_id, phase,"
        " requested_at, worked_at) VALUES (%s, %s, %s, 'dct_1', 'aud_1', %s, now(), now())",
        *(tenant.organization_id, project_id or tenant.organization_id, project_id, phase),
    )
    answers = [await request_organization(tenant), await request_project(tenant), await request_project(second)]
    assert tuple(answer.status for answer in answers) == statuses
    assert {answer.code for answer in answers if answer.status != 200} <= {"resource_deletion_in_progress"}
    assert await exports_audited(rival) == statuses.count(200)
