"""`soundmark_sdk.client` calls every published route of the real Core."""

import io
import json
import re
import zipfile
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import httpx2
import pytest
from soundmark_sdk import (
    AsyncReceiver,
    AsyncReporter,
    Consent,
    DeliveryFailure,
    DeviceSecret,
    Measurement,
    Resolution,
    hear,
    measure,
    read_key_set,
    verify_archive,
    verify_certificate,
    verify_decode_certificate,
    verify_offline_pack,
    verify_signed_code,
)
from soundmark_sdk.client import (
    ApiProblem,
    AsyncClient,
    AuditFilters,
    CodeFilters,
    CodeOrder,
    ReportFilters,
)
from soundmark_sdk.client.records import Code
from soundmark_sdk.publisher import AsyncPublisher, Backend, ReportingTokens
from support.codes.measurements import make_measurement
from support.processes.faulty_proxy import FaultyProxy
from support.processes.secret_leaks import remember_secret

from .conftest import Recording, Tenant, World
from .service_walks import walk_billing, walk_platform, walk_support, walk_webhooks

# Receivers and publishers call these, with their own halves of the SDK.
RECEIVERS: Final = {
    "GET /v1/resolve/{broadcast_token}",
    "GET /v1/keys",
    "POST /v1/abuse-reports",
    "POST /v1/events",
}
# Payment providers and the support desk call these, with what they sign or are asked about.
PROVIDERS: Final = (" /v1/billing/webhooks/", " /v1/support/webhooks/")
# Auditors, monitors and witnesses read it, with tools for any log.
LOG: Final = " /v1/log"


@pytest.fixture
def world(world: World) -> World:
    """A Core that is asked once: for what it lacks here, a client would ask six times with growing pauses."""
    return replace(world, attempts_max=1)


async def test_every_published_route_is_called_and_understood(world: World, tenant: Tenant) -> None:
    """One walk through all groups; Core's own document lists the routes."""
    await walk_organizations(tenant)
    await walk_people(world, tenant)
    await walk_keys(tenant)
    await walk_codes(world, tenant)
    await walk_campaigns(tenant)
    await walk_audience(world, tenant)
    await walk_audit_log(tenant)
    await walk_platform(tenant)
    await walk_billing(tenant)
    await walk_webhooks(tenant)
    await walk_support(tenant)
    await walk_out(tenant)

    published = {
        f"{method.upper()} {path}" for path, item in (await world.document())["paths"].items() for method in item
    }
    called = {route for requested in world.requested for route in published if _matches(route, requested)}
    of_providers = {route for route in published if any(path in route for path in (*PROVIDERS, LOG))}
    assert called == {route for route in published if " /v1/" in route} - RECEIVERS - of_providers


def _matches(route: str, requested: str) -> bool:
    # A template with parameters does not match where there is a literal path.
    literal = re.fullmatch(
        re.sub(r"\\\{\w+\\\}", "(?!batch|recover|revoke-batch|accept)[^/]+", re.escape(route)), requested
    )
    return literal is not None


async def walk_organizations(tenant: Tenant) -> None:
    client = tenant.client
    caller = await client.caller()
    assert (caller.type, caller.id, caller.organization_id, caller.mfa) == ("user", "owner", None, True)
    renamed = await client.organizations.rename("Radio Südlicht", organization_id=tenant.organization_id)
    assert (renamed.name, renamed.role, renamed.deletion_requested_at) == ("Radio Südlicht", "owner", None)
    await client.organizations.create("Another")
    assert [one.name async for one in client.organizations.list(page_size=1)] == ["Another", "Radio Südlicht"]
    assert len((await client.organizations.page(limit=1)).data) == 1
    project = await client.projects.rename(
        "Evening show", organization_id=tenant.organization_id, project_id=tenant.project_id
    )
    assert [one async for one in client.projects.list(organization_id=tenant.organization_id)] == [project]
    assert (await client.projects.page(organization_id=tenant.organization_id)).data == (project,)
    in_project = {"organization_id": tenant.organization_id, "project_id": tenant.project_id}
    allowed = await client.projects.put_allowed_hosts(["*.Example.org", "example.org"], **in_project)
    assert allowed.hosts == ("*.example.org", "example.org")
    assert await client.projects.allowed_hosts(**in_project) == allowed
    assert (await client.projects.put_allowed_hosts(None, **in_project)).hosts is None
    with pytest.raises(ApiProblem) as conflict:
        await client.projects.create("Evening show", organization_id=tenant.organization_id)
    assert (conflict.value.status, conflict.value.code) == (409, "project_name_conflict")
    assert conflict.value.request_id is not None


async def walk_people(world: World, tenant: Tenant) -> None:
    client, organization_id = tenant.client, tenant.organization_id
    invited = await client.invitations.create(
        "ada@example.org", "member", expires_in_days=2, organization_id=organization_id
    )
    assert invited.secret.startswith("xin_")
    assert invited.secret not in repr(invited)
    async with world.client("ada") as ada:
        joined = await ada.invitations.accept(invited.secret)
        assert (joined.organization_id, joined.role) == (organization_id, "member")
        with pytest.raises(ApiProblem) as used:
            await ada.invitations.accept(invited.secret)
        assert used.value.code == "invitation_invalid"
        assert invited.secret not in str(used.value)
    other = await client.invitations.create("eve@example.org", "billing", organization_id=organization_id)
    assert (await client.invitations.revoke(other.id, organization_id=organization_id)).status == "revoked"
    statuses = [one.status async for one in client.invitations.list(organization_id=organization_id)]
    assert statuses == ["revoked", "accepted"]
    assert len((await client.invitations.page(organization_id=organization_id)).data) == 2
    assert (await client.members.change_role("ada", "admin", organization_id=organization_id)).role == "admin"
    assert {one.subject_id async for one in client.members.list(organization_id=organization_id)} == {"owner", "ada"}
    await client.members.remove("ada", organization_id=organization_id)
    assert [one.subject_id for one in (await client.members.page(organization_id=organization_id)).data] == ["owner"]


async def walk_keys(tenant: Tenant) -> None:
    client, organization_id = tenant.client, tenant.organization_id
    key = await client.api_keys.create(
        {"codes:read"}, expires_in_days=1, name="Playout", organization_id=organization_id, project_id=tenant.project_id
    )
    assert (key.scopes, key.status, key.last_used_at) == (("codes:read",), "active", None)
    assert key.name == "Playout"
    assert (await client.api_keys.rename(key.id, "Studio", organization_id=organization_id)).name == "Studio"
    assert (await client.api_keys.rename(key.id, None, organization_id=organization_id)).name is None
    rotated = await client.api_keys.rotate_secret(key.id, organization_id=organization_id)
    assert rotated.secret != key.secret
    assert rotated.secret not in repr(rotated)
    assert (await client.api_keys.revoke(key.id, organization_id=organization_id)).status == "revoked"
    assert [one.id async for one in client.api_keys.list(organization_id=organization_id)] == [key.id]
    assert [
        one.id
        for one in (await client.api_keys.page(project_id=tenant.project_id, organization_id=organization_id)).data
    ] == [key.id]


async def walk_codes(world: World, tenant: Tenant) -> None:
    codes, organization_id = tenant.client.codes, tenant.organization_id
    request = tenant.issue_request()
    assert (await codes.dry_run(request)).document == {"would_issue": True, "code": None, "quota_remaining": 100}
    assert (await codes.dry_run_batch(request, 100)).would_issue
    code = await codes.issue(request)
    batch = await codes.issue_batch(request, 3)
    assert (code.intent, code.status) == (request.intent, "active")
    verified = verify_signed_code(
        dict(code.signed_code), read_key_set(await world.keys()), token=code.broadcast_token, now=datetime.now(UTC)
    )
    assert verified.xr_id == code.xr_id
    usage = await tenant.client.usage(organization_id=organization_id)
    assert (usage.codes.issued, usage.codes.remaining, usage.audience.status) == (4, 96, "available")
    listed = [one async for one in codes.list(page_size=3, organization_id=organization_id)]
    assert [one.xr_id for one in listed][-1] == code.xr_id
    assert len(listed) == 4
    assert (await codes.page(CodeFilters(status="revoked"), organization_id=organization_id)).data == ()
    assert [one.intent for one in listed] == [None] * 4
    at = CodeFilters(address_prefix=str(request.intent.resource["url"])[:8].upper())
    oldest_first = {"order": CodeOrder(order="asc"), "organization_id": organization_id}
    (first, *_) = (await codes.page(at, include_intent=True, **oldest_first)).data
    assert (first.xr_id, first.intent) == (code.xr_id, request.intent)
    nowhere = CodeFilters(address_prefix="nowhere")
    assert [one async for one in codes.list(nowhere, include_intent=True, **oldest_first)] == []
    assert await codes.show(code.xr_id, project_id=tenant.project_id, organization_id=organization_id) == code

    wav = io.BytesIO()
    assert await codes.wav(code.xr_id, wav, protocol=5, organization_id=organization_id) == len(wav.getvalue())
    wav.seek(0)
    assert [frame.text for frame in hear(wav)] == [code.broadcast_frame]
    bundle = io.BytesIO()
    ids = [one.xr_id for one in batch.data]
    await codes.audio_bundle(ids, bundle, organization_id=organization_id, project_id=tenant.project_id)
    with zipfile.ZipFile(bundle) as archive:
        assert archive.namelist() == [f"{xr_id}.wav" for xr_id in ids]

    await certify(tenant, code.xr_id)
    pack = io.BytesIO()
    tenant_ids = {"organization_id": organization_id, "project_id": tenant.project_id}
    assert await codes.make_offline_pack(pack, valid_for_s=300, **tenant_ids) == len(pack.getvalue())
    verified = verify_offline_pack(pack.getvalue(), await tenant.client.get_key_history())
    found = verified.find(code.broadcast_token, verified.issued_at)
    assert found is not None
    assert (found.xr_id, found.intent) == (code.xr_id, code.intent)
    assert (await codes.revoke(code.xr_id, organization_id=organization_id)).status == "revoked"
    revoked = await codes.revoke_batch(
        [code.xr_id, *ids], organization_id=organization_id, project_id=tenant.project_id
    )
    assert (revoked.requested_count, revoked.revoked_count, revoked.unchanged_count) == (4, 3, 1)
    with pytest.raises(ApiProblem) as unknown:
        await codes.show("xr_" + "0" * 22, organization_id=organization_id)
    assert (unknown.value.status, unknown.value.code) == (404, "code_not_found")
    await recover_both(world, tenant)


async def recover_both(world: World, tenant: Tenant) -> None:
    """Call both recover routes as they are needed: the response to the issuance was lost."""
    for count in (None, 2):
        with FaultyProxy(world.url, "answer lost") as proxy:
            token = world.issuer.token("owner")
            async with AsyncClient(proxy.url, token, transport=Recording(world.requested)) as client:
                request = tenant.issue_request()
                if count is None:
                    await client.codes.issue(request)
                else:
                    await client.codes.issue_batch(request, count)
        assert [passed.path.endswith("/recover") for passed in proxy.passed] == [False, True]


async def walk_campaigns(tenant: Tenant) -> None:
    campaigns, organization_id, project_id = tenant.client.campaigns, tenant.organization_id, tenant.project_id
    ends_at = datetime(2099, 1, 1, tzinfo=UTC)
    campaign = await campaigns.create("Summer", ends_at=ends_at, organization_id=organization_id, project_id=project_id)
    assert (campaign.starts_at, campaign.ends_at, campaign.status) == (None, ends_at, "active")
    changed = await campaigns.update(campaign.id, name="Autumn", ends_at=None, organization_id=organization_id)
    assert (changed.name, changed.ends_at) == ("Autumn", None)
    code = await tenant.client.codes.issue(tenant.issue_request(campaign_id=campaign.id))
    assert code.campaign_id == campaign.id
    summary = await campaigns.summary(campaign.id, organization_id=organization_id)
    assert (summary.counts.issued, summary.counts.active, summary.first_issued_at) == (1, 1, code.issued_at)
    other = await campaigns.create("Winter", organization_id=organization_id, project_id=project_id)
    assert (await campaigns.archive(other.id, organization_id=organization_id)).status == "archived"
    stopped = await campaigns.stop(campaign.id, organization_id=organization_id)
    assert (stopped.campaign.status, stopped.revoked_count) == ("archived", 1)
    assert [one.name async for one in campaigns.list(organization_id=organization_id, project_id=project_id)] == [
        "Winter",
        "Autumn",
    ]
    assert len((await campaigns.page(organization_id=organization_id, project_id=project_id)).data) == 2
    with pytest.raises(ApiProblem) as archived:
        await tenant.client.codes.issue(tenant.issue_request(campaign_id=campaign.id))
    assert (archived.value.code, archived.value.unsettled) == ("campaign_archived", None)


async def walk_audience(world: World, tenant: Tenant) -> None:
    integrations, audience = tenant.client.integrations, tenant.client.audience
    ids = {"organization_id": tenant.organization_id, "project_id": tenant.project_id}
    made = await integrations.create("demo", retention_days=14, name="Studio", **ids)
    assert (made.mode, made.status, made.secret_rotated_at) == ("demo", "active", None)
    assert made.name == "Studio"
    assert (await integrations.rename(made.id, "Lobby", **ids)).name == "Lobby"
    rotated = await integrations.rotate_secret(made.id, **ids)
    assert len({made.hmac_secret, rotated.hmac_secret}) == 2
    assert rotated.secret_rotated_at is not None
    assert made.hmac_secret not in repr(made)
    remember_secret(made.hmac_secret)
    remember_secret(rotated.hmac_secret)
    changed = await integrations.change_retention(made.id, 7, **ids)
    assert (changed.previous_retention_days, changed.retention_days, changed.deleted_events) == (14, 7, 0)
    assert (await integrations.replace_core_key(made.id, **ids)).core_key_id == made.core_key_id
    code = await tenant.client.codes.issue(tenant.issue_request(audience_integration_id=made.id))
    assert (code.audience_enabled, code.audience_integration_id) == (True, made.id)

    outcomes, resolution = await measure_through(world, rotated.hmac_secret, code)
    assert outcomes == ["recorded", "duplicate"]
    filters = ReportFilters(xr_id=code.xr_id, from_at=datetime.now(UTC) - timedelta(days=1))
    report = await audience.report(made.id, filters, **ids)
    assert (report.events, report.estimated_reach, report.integrity_signals.event_replays) == (1, 1, 1)
    assert [row.country for row in report.by_country] == ["TN"]
    table, legacy = io.BytesIO(), io.BytesIO()
    assert await audience.download_report(made.id, table, **ids) == len(table.getvalue())
    assert b"total,,events,1" in table.getvalue()
    assert (await audience.legacy_report(**ids)).events == 0
    assert await audience.download_legacy_report(legacy, **ids) == len(legacy.getvalue()) > 0
    usage = await tenant.client.usage(organization_id=tenant.organization_id)
    assert [mode.events for mode in usage.audience.modes if mode.mode == "demo"] == [1]

    assert (await integrations.revoke(made.id, **ids)).status == "revoked"
    assert [one.id async for one in integrations.list(**ids)] == [made.id]
    assert [one.status for one in (await integrations.page(**ids)).data] == ["revoked"]
    with pytest.raises(ApiProblem) as revoked:
        await integrations.rotate_secret(made.id, **ids)
    assert revoked.value.code == "integration_revoked"
    with pytest.raises(DeliveryFailure) as late:
        await forward(world, rotated.hmac_secret, measured(resolution))
    assert late.value.reason == "integration_revoked"


async def measure_through(world: World, hmac_secret: str, code: Code) -> tuple[list[str], Resolution]:
    """Return the outcomes of an event that is delivered twice, through a receiver and a publisher."""
    async with AsyncReceiver(world.url) as receiver:
        resolution = await receiver.resolve(code.broadcast_token)
        await receiver.report_abuse(code.broadcast_token, "spam", "It is spam.", contact="me@example.org")
    measurement = measured(resolution)
    return [await forward(world, hmac_secret, measurement) for _ in range(2)], resolution


def measured(resolution: Resolution) -> Measurement:
    integration_id = resolution.policy.audience_integration_id
    assert integration_id is not None
    consent = Consent(integration_id, datetime.now(UTC))
    measurement = measure(
        resolution, consent=consent, device_secret=DeviceSecret.new(), receiver_class="phone", country="TN"
    )
    event = json.loads(measurement.body)
    for hidden in (event["event_id"], event["measurement_token"], event["proof"]["signature"]):
        remember_secret(hidden)
    return measurement


async def forward(world: World, hmac_secret: str, measurement: Measurement) -> str:
    """Report the measurement as a receiver does, to the reference backend, which forwards it through Core."""
    publisher = AsyncPublisher(world.url, measurement.integration_id, hmac_secret)
    tokens = ReportingTokens(b"a reporting key of exactly 32 by", measurement.integration_id)
    token = tokens.issue(Consent(measurement.integration_id, datetime.now(UTC)))
    transport = httpx2.ASGITransport(app=Backend(publisher, tokens))
    async with publisher, AsyncReporter("http://127.0.0.1:8090", token, transport=transport) as reporter:
        return await reporter.report(measurement)


async def walk_audit_log(tenant: Tenant) -> None:
    log, organization_id = tenant.client.audit_log, tenant.organization_id
    entries = [one async for one in log.list(page_size=5, organization_id=organization_id)]
    assert entries[-1].action == "organization.created"
    assert entries[0].actor.id == "owner"
    filters = AuditFilters(action="campaign.stopped", actor="owner", from_at=entries[-1].created_at)
    (stopped,) = (await log.page(filters, organization_id=organization_id)).data
    assert stopped.metadata["revoked_count"] == 1
    lines, table = io.BytesIO(), io.BytesIO()
    assert await log.download(lines, organization_id=organization_id) == len(lines.getvalue())
    assert [json.loads(line)["id"] for line in lines.getvalue().splitlines()] == [entry.id for entry in entries]
    await log.download(table, filters, form="csv", organization_id=organization_id)
    assert len(table.getvalue().splitlines()) == 2
    verification = await log.verify(organization_id=organization_id)
    assert (verification.verified, verification.entries) == (True, len(entries))


async def certify(tenant: Tenant, xr_id: str) -> None:
    """Have a measurement signed, and verify what everybody who has the id reads."""
    client = tenant.client
    issued = await client.codes.certify(xr_id, make_measurement(), organization_id=tenant.organization_id)
    read = await client.get_decode_certificate(issued.certificate_id)
    assert read == issued
    assert verify_decode_certificate(read.document, await client.get_key_history()).xr_id == xr_id


async def walk_out(tenant: Tenant) -> None:
    """Take everything along, delete the project and then the organisation, and verify what was received."""
    client, organization_id = tenant.client, tenant.organization_id
    keys = await client.get_key_history()
    subjects: tuple[tuple[Any, dict[str, str]], ...] = (
        (client.projects, {"organization_id": organization_id, "project_id": tenant.project_id}),
        (client.organizations, {"organization_id": organization_id}),
    )
    for leaving, named in subjects:
        *_, subject_id = named.values()
        archive = io.BytesIO()
        assert await leaving.export(archive, **named) == len(archive.getvalue())
        archive.seek(0)
        assert verify_archive(archive, keys).subject_id == subject_id
        preflight = await leaving.closure_preflight(**named)
        assert (preflight.can_delete, preflight.blockers) == (True, ())
        certificate_id = await leaving.delete(subject_id, **named)
        assert certificate_id == preflight.certificate_id
        certificate = await client.get_deletion_certificate(certificate_id)
        assert verify_certificate(certificate.document, keys).subject_id == subject_id
