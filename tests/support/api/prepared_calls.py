"""Preparing one valid call of each operation, with what has to exist for it."""

from dataclasses import replace
from typing import Any, Final

import httpx2

from soundmark.core.domain.webhooks.endpoint import ENDPOINTS_MAX
from soundmark.kit.text import base64url
from support.api.world import OPERATIONS, Call, World, count_rows, send
from support.audience.event_delivery import make_event, sign_body
from support.codes.measurements import make_measurement
from support.outside.desk import configure_desk, reply_body, sign_as_sent, ticket_body
from support.tenancy.release_evidence import insert_evidence

ROOT: Final = {"realm_access": {"roles": ["svc_platform_admin"]}}


async def name_organization(world: World) -> Call:
    return Call(params=world.tenant.query)


async def name_project(world: World) -> Call:
    return Call(params=world.tenant.in_project)


async def make_abuse_report(world: World) -> Call:
    """Insert a report, whatever the limit on reports, and prepare to close it."""
    number = await count_rows(world, "abuse_reports")
    report_id = f"abr_{number:022}"
    await world.rival.run(
        "INSERT INTO abuse_reports (id, xr_id, category, status, created_at)"
        " VALUES (%s, 'xr_1', 'spam', 'open', now())",
        report_id,
    )
    return Call(path={"report_id": report_id}, json={"status": "closed", "note": None})


async def fill_suspension(world: World) -> Call:
    """Prepare the suspension of an organisation that the following calls need not use."""
    owner = world.people.person("somebody")
    return Call(path={"organization_id": await owner.make_organization()}, json={"reason": "Spam."})


async def name_suspended_organization(world: World) -> Call:
    call = await fill_suspension(world)
    suspended = await send(world.people.person("root", **ROOT), OPERATIONS["suspend_organization"], call)
    assert suspended.status == 200, suspended.body
    return Call(path=call.path)


async def rename_organization(world: World) -> Call:
    return Call(path={"organization_id": world.tenant.organization_id}, json={"name": "Radio Südlicht"})


async def rename_project(world: World) -> Call:
    return Call(path={"project_id": world.tenant.project_id}, params=world.tenant.query, json={"name": "Night show"})


async def name_own_project(world: World) -> Call:
    return Call(path={"project_id": world.tenant.project_id}, params=world.tenant.query)


async def fill_allowed_hosts(world: World) -> Call:
    """Prepare a change of the allowed hosts, another one each time, which still allows the intents of other calls."""
    number = await count_rows(world, "audit_entries")
    body = {"hosts": ["example.org", f"a{number}.example.org"]}
    return Call(path={"project_id": world.tenant.project_id}, params=world.tenant.query, json=body)


async def preview_organization(world: World) -> Call:
    return Call(path={"organization_id": world.tenant.organization_id})


async def preview_project(world: World) -> Call:
    return Call(path={"project_id": world.tenant.project_id}, params=world.tenant.query)


async def confirm_organization(world: World) -> Call:
    """Prepare the deletion of the organisation, which succeeds once."""
    organization_id = world.tenant.organization_id
    return Call(path={"organization_id": organization_id}, json={"confirmation": organization_id})


async def make_project(world: World) -> Call:
    """Prepare the deletion of another project."""
    project = (await world.tenant.api.post("/v1/projects", json=(await fill_project(world)).json)).json
    return Call(path={"project_id": project["id"]}, params=world.tenant.query, json={"confirmation": project["id"]})


async def make_certificate(world: World) -> Call:
    """Delete a project, and prepare to read the certificate."""
    call = await make_project(world)
    api = world.people.person("owner")
    answer = await send(api, OPERATIONS["delete_project"], call)
    assert answer.status == 204, answer.body
    return Call(path={"certificate_id": answer.headers["location"].rpartition("/")[2]})


async def prove_key(world: World) -> Call:
    """Prepare to read the proof of a signing key, which is in the log from the start."""
    ((digest,),) = await world.rival.rows("SELECT digest FROM log_leaves WHERE position = 0")
    return Call(path={"digest": base64url.encode(digest)})


async def export_organization(world: World) -> Call:
    return Call(path={"organization_id": world.tenant.organization_id})


async def export_project(world: World) -> Call:
    return Call(path={"project_id": world.tenant.project_id}, params=world.tenant.query)


async def fill_project(world: World) -> Call:
    return Call(json={**world.tenant.query, "name": f"Show {await count_rows(world, 'projects')}"})


async def fill_campaign(world: World) -> Call:
    return Call(json=world.tenant.campaign_body(name=f"Campaign {await count_rows(world, 'campaigns')}"))


async def fill_code(world: World) -> Call:
    return Call(json=world.tenant.code_body())


async def fill_codes(world: World) -> Call:
    return Call(json=world.tenant.code_body(count=2))


async def fill_pack(world: World) -> Call:
    params = {**world.tenant.query, "project_id": world.tenant.project_id}
    return Call(params=params, json={"campaign_id": None, "valid_for_s": 3600})


async def fill_integration(world: World) -> Call:
    return Call(json=world.tenant.integration_body())


async def fill_key(world: World) -> Call:
    return Call(json=world.tenant.key_body())


async def fill_invitation(world: World) -> Call:
    return Call(json=world.tenant.invitation_body(email=f"{world.caller_id}-friend@example.org"))


async def make_campaign(world: World) -> Call:
    campaign = await world.tenant.make_campaign(f"Campaign {await count_rows(world, 'campaigns')}")
    return Call(path={"campaign_id": campaign["id"]}, params=world.tenant.query)


async def change_campaign(world: World) -> Call:
    return replace(await make_campaign(world), json={"ends_at": "2099-01-01T00:00:00.000Z"})


async def issue_one_before(world: World) -> Call:
    return await _issue(world, "/v1/codes", world.tenant.code_body())


async def issue_two_before(world: World) -> Call:
    return await _issue(world, "/v1/codes/batch", world.tenant.code_body(count=2))


async def make_code(world: World) -> Call:
    code = await world.tenant.make_code()
    return Call(path={"xr_id": code["xr_id"]}, params=world.tenant.query)


async def measure_code(world: World) -> Call:
    return replace(await make_code(world), json=make_measurement())


async def issue_certificate(world: World) -> Call:
    """Issue a decode certificate, and prepare to read it."""
    answer = await send(world.people.person("owner"), OPERATIONS["issue_decode_certificate"], await measure_code(world))
    assert answer.status == 201, answer.body
    return Call(path={"certificate_id": answer.json["certificate_id"]})


async def select_code(world: World) -> Call:
    code = await world.tenant.make_code()
    return Call(params=world.tenant.query, json={"project_id": world.tenant.project_id, "xr_ids": [code["xr_id"]]})


async def select_code_of_project(world: World) -> Call:
    code = await world.tenant.make_code()
    return Call(params=world.tenant.in_project, json={"xr_ids": [code["xr_id"]]})


async def make_token(world: World) -> Call:
    code = await world.tenant.make_code()
    return Call(path={"broadcast_token": code["broadcast_token"]})


async def make_integration(world: World) -> Call:
    integration = await world.tenant.make_integration()
    return Call(path={"integration_id": integration["id"]}, params=world.tenant.in_project)


async def rename_integration(world: World) -> Call:
    return replace(await make_integration(world), json={"name": "Studio"})


async def change_retention(world: World) -> Call:
    return replace(await make_integration(world), json={"retention_days": 7})


async def sign_event(world: World) -> Call:
    """Prepare an event that its publisher signed; no other credential is needed to deliver it."""
    tenant = world.tenant
    integration = await tenant.make_integration()
    code = await tenant.make_code(audience={"enabled": True, "integration_id": integration["id"]})
    event = await make_event(tenant, code)
    body = httpx2.Request("POST", "http://core.test", json=event).content
    return Call(json=event, headers={"X-Svc-Signature": sign_body(body, integration["hmac_secret"])})


async def make_key(world: World) -> Call:
    key = await world.tenant.make_key()
    return Call(path={"api_key_id": key["id"]}, params=world.tenant.query)


async def rename_key(world: World) -> Call:
    return replace(await make_key(world), json={"name": "Playout"})


async def change_member(world: World) -> Call:
    subject_id = await world.make_member("changed", "member")
    return Call(path={"subject_id": subject_id}, params=world.tenant.query, json={"role": "billing"})


async def remove_member(world: World) -> Call:
    """Prepare the removal of another member, or of the caller where their role removes nobody else."""
    if world.caller_role in {"member", "billing"}:
        subject_id = await world.make_member(world.caller_id, world.caller_role)
    else:
        subject_id = await world.make_member("leaving", "member")
    return Call(path={"subject_id": subject_id}, params=world.tenant.query)


async def make_invitation(world: World) -> Call:
    invitation = await world.tenant.make_invitation()
    return Call(path={"invitation_id": invitation["id"]}, params=world.tenant.query)


async def invite_caller(world: World, role: str = "member") -> Call:
    """Prepare an invitation of the caller into an organisation that they are not in."""
    host = await world.people.tenant_of("host")
    invitation = await host.make_invitation(email=f"{world.caller_id}@example.org", role=role)
    return Call(json={"token": invitation["secret"]})


async def fill_ticket(world: World) -> Call:
    """Prepare a ticket that the desk has not seen; each call has a request of its own."""
    await use_desk(world)
    return Call(params=world.tenant.query, json=ticket_body(await count_rows(world, "tickets")))


async def make_ticket(world: World) -> Call:
    fresh = ticket_body(1000 + await count_rows(world, "tickets"))  # Another ticket than one that is prepared.
    call = replace(await fill_ticket(world), json=fresh)
    made = await send(world.people.person("owner"), OPERATIONS["create_ticket"], call)
    assert made.status == 201, made.body
    return Call(path={"ticket_id": made.json["id"]}, params=world.tenant.query)


async def make_reply(world: World) -> Call:
    """Prepare a reply to a new ticket."""
    return replace(await make_ticket(world), json=reply_body())


async def sign_desk_delivery(world: World) -> Call:
    """Prepare a delivery that the desk signed, about a conversation that is no ticket."""
    await use_desk(world)
    document = {"id": 4711, "status": "closed", "updatedAt": "2026-11-20T10:00:00Z"}
    return Call(json=document, headers=sign_as_sent(world.sandbox, document))


async def use_desk(world: World) -> None:
    administrator = world.people.person("platform-admin", realm_access={"roles": ["svc_platform_admin"]})
    await configure_desk(world.rival, administrator, world.sandbox)


async def store_evidence(world: World) -> Call:
    """Store evidence as the worker does. It was computed now, by the clock of the Core under test."""
    await insert_evidence(world.rival, world.tenant.api.clock.now())
    return Call()


async def name_untested_system(world: World) -> Call:
    """Name a system without settings, in another minute, because it may be tested ten times in each."""
    world.tenant.api.clock.advance(seconds=61)
    world.tenant.api.clock.advance(seconds=-61)  # For the wall clock alone, by which the callers' tokens expire.
    return Call(path={"system": "accounting"})


async def make_failed_job(world: World) -> Call:
    """Prepare a failed job, in the place of all others."""
    await world.rival.run("DELETE FROM procrastinate_jobs WHERE status = 'failed'")
    await world.rival.run(
        "INSERT INTO procrastinate_jobs (queue_name, task_name, status, attempts) VALUES ('default', 'x', 'failed', 1)"
    )
    ((job_id,),) = await world.rival.rows("SELECT id FROM procrastinate_jobs WHERE status = 'failed'")
    return Call(path={"job_id": str(job_id)})


async def fill_webhook_endpoint(world: World) -> Call:
    return Call(json=world.tenant.webhook_body(project_id=world.tenant.project_id))


async def make_webhook_endpoint(world: World, url: str = "https://consumer.example.org/webhooks") -> Call:
    """Prepare an endpoint, in the place of all others if the organisation has as many as it may have."""
    if await count_rows(world, "webhook_endpoints") >= ENDPOINTS_MAX:
        await world.rival.run("DELETE FROM webhook_endpoints")
    endpoint = await world.tenant.make_webhook_endpoint(url=url)
    return Call(path={"endpoint_id": endpoint["id"]}, params=world.tenant.query)


async def make_unreachable_endpoint(world: World) -> Call:
    """Prepare an endpoint on this machine where nobody listens."""
    return await make_webhook_endpoint(world, "http://127.0.0.1:9/")


async def change_webhook_endpoint(world: World) -> Call:
    return replace(await make_webhook_endpoint(world), json={"event_types": ["code.issued"], "enabled": True})


async def make_webhook_deliveries(world: World) -> Call:
    """Make an endpoint to which two events are delivered."""
    call = await make_webhook_endpoint(world)
    for _ in range(2):
        event_id = (await make_webhook_event(world)).path["event_id"]
        await world.rival.run(
            "INSERT INTO webhook_deliveries"
            " (organization_id, id, endpoint_id, event_id, event_type, status, attempts, created_at)"
            " VALUES (%s, %s, %s, %s, 'organization.updated', 'delivered', 1, date_trunc('milliseconds', now()))",
            *(world.tenant.organization_id, f"whd_of_{event_id}", call.path["endpoint_id"], event_id),
        )
    return call


async def replay_webhooks(world: World) -> Call:
    period = {"from": "2026-01-01T00:00:00.000Z", "to": "2099-01-01T00:00:00.000Z"}
    return replace(await make_webhook_endpoint(world), json=period)


async def make_webhook_event(world: World) -> Call:
    event_id = f"evn_of_the_sweep_{await count_rows(world, 'webhook_events')}"
    await world.rival.run(
        "INSERT INTO webhook_events (organization_id, id, type, actor_type, actor_id, data, created_at)"
        " VALUES (%s, %s, 'organization.updated', 'user', 'owner', '{}', now())",
        world.tenant.organization_id,
        event_id,
    )
    return Call(path={"event_id": event_id}, params=world.tenant.query)


async def _issue(world: World, path: str, body: dict[str, Any]) -> Call:
    """Issue Codes under an idempotency key, by which the call then recovers them."""
    headers = {"Idempotency-Key": f"issuance-before-{await count_rows(world, 'issuance_receipts')}"}
    answer = await world.tenant.api.post(path, json=body, headers=headers)
    assert answer.status == 201, answer.body
    return Call(json=body, headers=headers)
