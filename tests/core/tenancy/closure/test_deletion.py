"""Deleting an organisation or a project: what goes, what stays, what is refused."""

import pytest
from support.api.core_client import Api
from support.audience.event_delivery import deliver_event, make_event
from support.database.content import read_content
from support.database.rival import Rival
from support.tenancy.closures import (
    SUBJECTS,
    Subject,
    fill,
    leave_operation_pending,
    list_mentions,
    organization_of,
    project_of,
    settle_operation,
)
from support.tenancy.people import People
from support.tenancy.tenant import Tenant, make_second_project, make_tenant

EACH = pytest.mark.parametrize("kind", SUBJECTS)


@EACH
async def test_no_row_of_it_is_left(tenant: Tenant, rival: Rival, measuring: Rival, kind: str) -> None:
    """Every table of both databases is searched, so that a new table is covered by itself.

    The organisation's audit log keeps the entries of a deleted project.
    """
    await fill(tenant)
    subject = SUBJECTS[kind](tenant)

    assert (await subject.delete()).status == 204

    kept = ["deletion_certificates"] if kind == "organization" else ["audit_entries", "deletion_certificates"]
    assert await list_mentions(rival, subject.id) == kept
    assert await list_mentions(measuring, subject.id) == []
    assert await measuring.rows("SELECT count(*) FROM events") == [(0,)]
    assert await rival.rows("SELECT count(*) FROM broadcasts") == [(0,)]


@EACH
async def test_nothing_of_others_is_touched(
    tenant: Tenant, people: People, rival: Rival, measuring: Rival, kind: str
) -> None:
    """Another organisation, and another project of the same one, stay byte for byte as they were."""
    other = await people.tenant_of("somebody")
    measured = await fill(other)
    await fill(tenant)
    codes = "SELECT * FROM codes WHERE organization_id = %s ORDER BY xr_id"
    core_before = await rival.rows(codes, other.organization_id)
    before = await read_content(rival, without=tenant.organization_id)
    audience_before = await measuring.rows(
        "SELECT e.* FROM events e JOIN integrations i ON i.number = e.integration WHERE i.organization_id = %s",
        other.organization_id,
    )

    assert (await SUBJECTS[kind](tenant).delete()).status == 204

    after = await read_content(rival, without=tenant.organization_id)
    changed = {old[0] for old, new in zip(before, after, strict=True) if old != new}
    # Those tables name no organisation in a column of their own.
    assert changed <= {"broadcasts", "organizations", "deletion_certificates", "instance_secrets", "log_queue"}
    assert await rival.rows(codes, other.organization_id) == core_before
    assert audience_before == await measuring.rows(
        "SELECT e.* FROM events e JOIN integrations i ON i.number = e.integration WHERE i.organization_id = %s",
        other.organization_id,
    )
    assert (await other.api.resolve(measured.code["broadcast_token"])).status == 200
    event = await make_event(other, measured.code)
    assert (await deliver_event(other.api, event, measured.hmac_secret)).status == 201


async def test_another_project_goes_on(tenant: Tenant, measuring: Rival) -> None:
    other = await make_second_project(tenant)
    measured = await fill(other)
    await fill(tenant)

    assert (await project_of(tenant).delete()).status == 204

    assert (await tenant.api.resolve(measured.code["broadcast_token"])).status == 200
    event = await make_event(other, measured.code)
    assert (await deliver_event(other.api, event, measured.hmac_secret)).status == 201
    assert await measuring.rows("SELECT project_id FROM integrations") == [(other.project_id,)]
    # The quota of the month counts the events of the whole organisation.
    assert await measuring.rows("SELECT events FROM event_months") == [(3,)]


@EACH
async def test_its_codes_no_longer_resolve_and_its_keys_are_void(tenant: Tenant, kind: str) -> None:
    code = await tenant.make_code()
    server = tenant.with_key(await tenant.make_key())
    assert (await server.api.get("/v1/codes", params=tenant.query)).status == 200

    assert (await SUBJECTS[kind](tenant).delete()).status == 204

    assert (await tenant.api.resolve(code["broadcast_token"])).code == "code_unavailable"
    assert (await server.api.get("/v1/codes", params=tenant.query)).code == "unauthenticated"


async def test_an_event_that_arrives_late_leaves_nothing(tenant: Tenant, measuring: Rival) -> None:
    """Not even a counter: the integration is unknown."""
    measured = await fill(tenant)
    late = await make_event(tenant, measured.code)
    assert (await organization_of(tenant).delete()).status == 204

    answers = [await deliver_event(tenant.api, late, measured.hmac_secret) for _ in range(2)]

    assert [answer.code for answer in answers] == ["unauthenticated"] * 2
    for table in ("events", "event_ids", "spent_proofs", "integrity_days", "event_months", "measured_codes"):
        assert await measuring.rows(f"SELECT count(*) FROM {table}") == [(0,)], table


@EACH
async def test_deleted_again_it_is_not_found(tenant: Tenant, kind: str) -> None:
    subject = SUBJECTS[kind](tenant)
    assert (await subject.delete()).status == 204

    assert (await subject.delete()).code == f"{kind}_not_found"
    assert (await subject.preflight()).code == f"{kind}_not_found"


@EACH
async def test_another_confirmation_changes_nothing(tenant: Tenant, rival: Rival, kind: str) -> None:
    subject = SUBJECTS[kind](tenant)
    await subject.preflight()
    before = await read_content(rival)
    other = tenant.project_id if kind == "organization" else tenant.organization_id
    for confirmation in ("", "org_", f"{subject.id} ", other):
        answer = await subject.delete(confirmation)
        assert (answer.status, answer.code) == (422, "confirmation_mismatch"), confirmation
    assert await read_content(rival) == before


@EACH
async def test_a_request_without_a_body_deletes_nothing(tenant: Tenant, rival: Rival, kind: str) -> None:
    """Many clients send no body with DELETE: then the media type is missing too, and is judged first."""
    subject = SUBJECTS[kind](tenant)
    await subject.preflight()
    before = await read_content(rival)

    bare = await subject.api.delete(subject.path, params=subject.params)
    empty = await subject.api.delete(subject.path, params=subject.params, headers={"content-type": "application/json"})

    assert (bare.status, bare.code) == (415, "unsupported_media_type")
    assert (empty.status, empty.code) == (400, "malformed_json")
    assert await read_content(rival) == before


@EACH
async def test_a_pending_operation_keeps_it_marked(tenant: Tenant, rival: Rival, kind: str) -> None:
    """Nothing is purged; once the operation has its outcome, a repetition completes the same closure."""
    measured = await fill(tenant)
    subject = SUBJECTS[kind](tenant)
    certificate_id = (await subject.preflight()).json["certificate_id"]
    entry_id = await leave_operation_pending(rival, tenant)

    refused = await subject.delete()

    assert (refused.status, refused.code) == (409, "deletion_operations_pending")
    preflight = (await subject.preflight()).json
    assert preflight["blockers"] == [{"code": "deletion_operations_pending", "ids": [entry_id]}]
    assert preflight["deletion_requested_at"] is not None
    assert (await tenant.api.resolve(measured.code["broadcast_token"])).status == 200
    await settle_operation(rival, entry_id)
    certificate = await subject.certificate()
    assert certificate["certificate_id"] == certificate_id
    assert certificate["requested_at"] == preflight["deletion_requested_at"]


async def test_a_pending_operation_of_another_project_is_not_in_the_way(tenant: Tenant, rival: Rival) -> None:
    await leave_operation_pending(rival, await make_second_project(tenant))

    assert (await project_of(tenant).delete()).status == 204


async def test_an_organisation_waits_for_the_deletion_of_its_project(tenant: Tenant, rival: Rival) -> None:
    """The project's deletion was requested first, so it goes on in the closing organisation; a new one does not."""
    other = await make_second_project(tenant)
    entry_id = await leave_operation_pending(rival, tenant)
    await project_of(tenant).delete()
    await settle_operation(rival, entry_id)

    assert (await organization_of(tenant).delete()).code == "deletion_operations_pending"

    blockers = (await organization_of(tenant).preflight()).json["blockers"]
    assert blockers == [{"code": "deletion_operations_pending", "ids": [tenant.project_id]}]
    assert (await project_of(other).delete()).code == "resource_deletion_in_progress"
    assert (await project_of(other).preflight()).json["blockers"] == [
        {"code": "resource_deletion_in_progress", "ids": []}
    ]
    assert (await project_of(tenant).delete()).status == 204
    assert (await organization_of(tenant).delete()).status == 204


async def test_the_audit_log_records_a_project_that_left(tenant: Tenant, rival: Rival) -> None:
    answer = await project_of(tenant).delete()

    expected = {"certificate_id": answer.headers["location"].rpartition("/")[2]}
    for action in ("project.deletion_requested", "project.deleted"):
        assert await rival.audited(action) == [("user operator", tenant.project_id, expected)]
    verification = await tenant.api.get("/v1/audit-log/verification", params=tenant.query)
    assert verification.json["first_broken"] is None


async def test_a_project_may_be_deleted_and_made_again(tenant: Tenant) -> None:
    """Its name is free, and what is new has nothing to do with what was deleted."""
    assert (await project_of(tenant).delete()).status == 204
    again = Tenant(tenant.api, tenant.organization_id, await tenant.api.make_project(tenant.organization_id))

    await fill(again)

    assert (await project_of(again).preflight()).json["deletes"]["audience_integrations"] == 1


async def test_many_codes_are_deleted_in_steps(tenant: Tenant, rival: Rival, monkeypatch: pytest.MonkeyPatch) -> None:
    """The certificate counts those of every step once."""
    monkeypatch.setattr("soundmark.core.features.tenancy.closure.deletion._ROWS_AT_ONCE", 3)
    for _ in range(7):
        await tenant.make_code()
    subject = organization_of(tenant)
    entries = await rival.rows("SELECT count(*) FROM audit_entries")

    certificate = await subject.certificate()

    assert certificate["deleted"]["core"]["codes"] == 7
    # And one for the request itself.
    assert certificate["deleted"]["core"]["audit_entries"] == entries[0][0] + 1


async def test_an_organisation_without_anything_can_leave(api: Api) -> None:
    organization_id = await api.make_organization()

    certificate = await Subject(api, organization_id).certificate()

    assert certificate["deleted"]["core"]["projects"] == 0
    assert certificate["deleted"]["core"]["members"] == 1
    assert await make_tenant(api)
