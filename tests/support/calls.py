"""One row per operation: a valid call of it, and what the tests of shared rules expect of it."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import httpx2

from soundmark.core.domain.tenancy.audit import AuditAction
from soundmark.core.domain.webhooks.endpoint import ENDPOINTS_MAX
from support.card_purchase import WEBHOOK_SECRET
from support.card_purchase import sign as sign_card_body
from support.card_stand_in import CARD_SECRET, CUSTOMER
from support.core_client import Answer, Api
from support.desk import configure_desk, sign_as_sent, ticket_body
from support.event_delivery import make_event, sign_body
from support.local_purchase import insert_local_checkout
from support.offers import make_card_offer
from support.operations import Operation, list_operations
from support.people import People
from support.platform_settings import put_setting
from support.release_evidence import insert_evidence
from support.rival import Rival
from support.running_sandbox import RunningSandbox
from support.tenant import Tenant

OPERATIONS: Final = {operation.id: operation for operation in list_operations()}


@dataclass(frozen=True)
class World:
    """An organisation that the person "owner" owns, and who makes the next call in it."""

    people: People
    rival: Rival
    tenant: Tenant
    desk: RunningSandbox
    caller_id: str = "owner"
    caller_role: str | None = "owner"

    async def make_member(self, subject_id: str, role: str) -> str:
        """Give somebody this role, in place of any that they have."""
        await self.rival.run(
            "DELETE FROM members WHERE organization_id = %s AND subject_id = %s",
            self.tenant.organization_id,
            subject_id,
        )
        await self.tenant.make_member(self.rival, subject_id, role)
        return subject_id


@dataclass(frozen=True)
class Call:
    """A request that succeeds for a caller with the right to make it; `path` holds the values of path parameters."""

    path: Mapping[str, str] = field(default_factory=dict)
    params: Mapping[str, str] = field(default_factory=dict)
    json: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)

    def with_query(self, **params: str) -> "Call":
        return replace(self, params={**self.params, **params})

    def with_headers(self, headers: Mapping[str, str]) -> "Call":
        return replace(self, headers={**self.headers, **headers})

    def replacing(self, old: str, new: str) -> "Call":
        """Return the call with `new` wherever a parameter, header or member of the body is `old`."""

        def swap(part: Any) -> Any:
            return {name: new if value == old else value for name, value in part.items()} if part else part

        return Call(swap(self.path), swap(self.params), swap(self.json), swap(self.headers))


_LONG_AGO: Final = datetime(2026, 1, 1, tzinfo=UTC)
Prepare = Callable[[World], Awaitable[Call]]


async def send(api: Api, operation: Operation, call: Call, *, query: str = "") -> Answer:
    """Make the call as `api`; `query` is appended to the query string as it stands."""
    values = {name: quote(value, safe="") for name, value in call.path.items()}
    url = httpx2.URL(operation.path.format(**values), params=call.params)
    if query:
        url = url.copy_with(query=(url.query + query.encode()).removeprefix(b"&"))
    body = {} if call.json is None else {"json": call.json}
    return await api.call(operation.method, str(url), headers=call.headers, **body)


def plain(**call: Any) -> Prepare:
    """Prepare a call that needs nothing to exist."""

    async def prepare(_: World) -> Call:
        return Call(**call)

    return prepare


async def name_organization(world: World) -> Call:
    return Call(params=world.tenant.query)


async def name_project(world: World) -> Call:
    return Call(params=world.tenant.in_project)


async def rename_organization(world: World) -> Call:
    return Call(path={"organization_id": world.tenant.organization_id}, json={"name": "Radio Südlicht"})


async def rename_project(world: World) -> Call:
    return Call(path={"project_id": world.tenant.project_id}, params=world.tenant.query, json={"name": "Night show"})


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


async def export_organization(world: World) -> Call:
    return Call(path={"organization_id": world.tenant.organization_id})


async def export_project(world: World) -> Call:
    return Call(path={"project_id": world.tenant.project_id}, params=world.tenant.query)


async def fill_project(world: World) -> Call:
    return Call(json={**world.tenant.query, "name": f"Show {await _count(world, 'projects')}"})


async def fill_campaign(world: World) -> Call:
    return Call(json=world.tenant.campaign_body(name=f"Campaign {await _count(world, 'campaigns')}"))


async def fill_code(world: World) -> Call:
    return Call(json=world.tenant.code_body())


async def fill_codes(world: World) -> Call:
    return Call(json=world.tenant.code_body(count=2))


async def fill_integration(world: World) -> Call:
    return Call(json=world.tenant.integration_body())


async def fill_key(world: World) -> Call:
    return Call(json=world.tenant.key_body())


async def fill_invitation(world: World) -> Call:
    return Call(json=world.tenant.invitation_body(email=f"{world.caller_id}-friend@example.org"))


async def make_campaign(world: World) -> Call:
    campaign = await world.tenant.make_campaign(f"Campaign {await _count(world, 'campaigns')}")
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


async def fill_plan(world: World) -> Call:
    body = {"name": "Codes Studio", "product": "codes", "monthly_code_quota": 5000, "active": True}
    return Call(path={"plan_id": f"plan_of_{await _count(world, 'plans')}"}, json=body)


async def fill_offer(world: World) -> Call:
    body = {"plan_id": "plan_codes_starter", "provider": "card", "active": False, "price_reference": "price_1"}
    return Call(path={"offer_id": f"offer_of_{await _count(world, 'offers')}"}, json=body)


async def fill_contract(world: World) -> Call:
    body = {"plan_id": "plan_audience_contract", "contract_reference": "2027-014", "status": "active"}
    return Call(path={"organization_id": world.tenant.organization_id}, json=body)


async def buy_offer(world: World) -> Call:
    """Prepare a checkout; the providers' stand-ins run beside every shared Core."""
    await configure_card(world)
    return Call(params=world.tenant.query, json={"offer_id": await make_card_offer(world.rival)})


async def make_checkout(world: World) -> Call:
    """Make a checkout that has ended, so that it does not keep its organisation."""
    made = await send(world.people.person("owner"), OPERATIONS["create_checkout"], await buy_offer(world))
    assert made.status == 201, made.body
    await world.rival.run("UPDATE checkouts SET status = 'failed'")
    return Call(path={"checkout_id": made.json["id"]}, params=world.tenant.query)


async def find_portal(world: World) -> Call:
    """Prepare the visit of a customer to the portal."""
    await configure_card(world)
    statement = "INSERT INTO card_customers VALUES (%s, %s, now()) ON CONFLICT DO NOTHING"
    await world.rival.run(statement, world.tenant.organization_id, CUSTOMER)
    return Call(params=world.tenant.query)


async def configure_card(world: World) -> None:
    administrator = world.people.person("platform-admin", realm_access={"roles": ["svc_platform_admin"]})
    assert (await put_setting(administrator, "card_secret_key", CARD_SECRET)).status == 200
    assert (await put_setting(administrator, "card_webhook_secret", WEBHOOK_SECRET)).status == 200


async def fill_ticket(world: World) -> Call:
    """Prepare a ticket that the desk has not seen; each call has a request of its own."""
    await use_desk(world)
    return Call(params=world.tenant.query, json=ticket_body(await _count(world, "tickets")))


async def make_ticket(world: World) -> Call:
    made = await send(world.people.person("owner"), OPERATIONS["create_ticket"], await fill_ticket(world))
    assert made.status == 201, made.body
    return Call(path={"ticket_id": made.json["id"]}, params=world.tenant.query)


async def sign_desk_delivery(world: World) -> Call:
    """Prepare a delivery that the desk signed, about a conversation that is no ticket."""
    await use_desk(world)
    document = {"id": 4711, "status": "closed", "updatedAt": "2026-11-20T10:00:00Z"}
    return Call(json=document, headers=sign_as_sent(world.desk, document))


async def use_desk(world: World) -> None:
    administrator = world.people.person("platform-admin", realm_access={"roles": ["svc_platform_admin"]})
    await configure_desk(world.rival, administrator, world.desk)


async def sign_card_event(world: World) -> Call:
    """Prepare an event that the card provider signed, of a type that leads to nothing."""
    await configure_card(world)
    event = {"id": "evt_of_the_sweep", "object": "event", "type": "ping", "created": 1, "data": {"object": {}}}
    body = httpx2.Request("POST", "http://core.test", json=event).content
    signature = sign_card_body(body, at_s=world.tenant.api.clock.unix_s())
    return Call(json=event, headers={"Stripe-Signature": signature})


async def notify_of_payment(world: World) -> Call:
    """Prepare a notification of a payment that was counted before, so that nobody is asked."""
    purchase = await insert_local_checkout(world.tenant, world.rival, status="completed", completed_at=_LONG_AGO)
    return Call(params={"payment_id": purchase.payment_id})


async def notify_of_checkout(world: World) -> Call:
    """Prepare the same at the address that was given to the provider."""
    purchase = await insert_local_checkout(world.tenant, world.rival, status="completed", completed_at=_LONG_AGO)
    return Call(path={"secret": purchase.secret}, params={"payment_id": purchase.payment_id})


async def store_evidence(world: World) -> Call:
    """Store evidence as the worker does. It was computed now, by the clock of the Core under test."""
    await insert_evidence(world.rival, world.tenant.api.clock.now())
    return Call()


async def fill_accounting_customer(world: World) -> Call:
    return Call(path={"organization_id": world.tenant.organization_id}, json={"thirdparty_id": 17})


async def fill_webhook_endpoint(world: World) -> Call:
    return Call(json=world.tenant.webhook_body(project_id=world.tenant.project_id))


async def make_webhook_endpoint(world: World, url: str = "https://consumer.example.org/webhooks") -> Call:
    """Prepare an endpoint, in the place of all others if the organisation has as many as it may have."""
    if await _count(world, "webhook_endpoints") >= ENDPOINTS_MAX:
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
            " VALUES (%s, %s, %s, %s, 'organization.updated', 'delivered', 1, now())",
            *(world.tenant.organization_id, f"whd_of_{event_id}", call.path["endpoint_id"], event_id),
        )
    return call


async def replay_webhooks(world: World) -> Call:
    period = {"from": "2026-01-01T00:00:00.000Z", "to": "2099-01-01T00:00:00.000Z"}
    return replace(await make_webhook_endpoint(world), json=period)


async def make_webhook_event(world: World) -> Call:
    event_id = f"evn_of_the_sweep_{await _count(world, 'webhook_events')}"
    await world.rival.run(
        "INSERT INTO webhook_events (organization_id, id, type, actor_type, actor_id, data, created_at)"
        " VALUES (%s, %s, 'organization.updated', 'user', 'owner', '{}', now())",
        world.tenant.organization_id,
        event_id,
    )
    return Call(path={"event_id": event_id}, params=world.tenant.query)


async def _count(world: World, table: str) -> int:
    """Count the rows of a table, from which each call makes a name that is not taken yet."""
    ((count,),) = await world.rival.rows(f"SELECT count(*) FROM {table}")
    return int(count)


async def _issue(world: World, path: str, body: dict[str, Any]) -> Call:
    """Issue Codes under an idempotency key, by which the call then recovers them."""
    headers = {"Idempotency-Key": f"issuance-before-{await _count(world, 'issuance_receipts')}"}
    answer = await world.tenant.api.post(path, json=body, headers=headers)
    assert answer.status == 201, answer.body
    return Call(json=body, headers=headers)


OWNERS: Final = frozenset({"owner"})
ADMINS: Final = frozenset({"owner", "admin"})
BUYERS: Final = ADMINS | {"billing"}
READERS: Final = ADMINS | {"member"}
EVERYBODY: Final = READERS | {"billing"}
BUYERS: Final = ADMINS | {"billing"}


class Row(NamedTuple):
    """What every test of a shared rule needs to know about one operation.

    `roles` are those of the contract's role table (section 2), written down a second time on purpose; None for an
    operation in no organisation. `foreign` is the problem code if what the call names belongs to another organisation
    of the same owner, None if it names nothing but an organisation. `audited` is the action of the one audit entry
    that the operation writes.
    """

    prepare: Prepare
    roles: frozenset[str] | None = None
    foreign: str | None = None
    audited: AuditAction | None = None


ROWS: Final[Mapping[str, Row]] = {
    "accept_invitation": Row(invite_caller, audited="invitation.accepted"),
    "archive_campaign": Row(make_campaign, roles=ADMINS, foreign="campaign_not_found", audited="campaign.archived"),
    "bundle_codes": Row(select_code_of_project, roles=READERS, foreign="code_not_found"),
    "change_integration_retention": Row(
        change_retention, roles=ADMINS, foreign="integration_not_found", audited="audience.integration_retention_update"
    ),
    "change_member": Row(change_member, roles=ADMINS, foreign="member_not_found", audited="member.role_changed"),
    "create_api_key": Row(fill_key, roles=ADMINS, foreign="project_not_found", audited="api_key.created"),
    "create_campaign": Row(fill_campaign, roles=ADMINS, foreign="project_not_found", audited="campaign.created"),
    "create_checkout": Row(buy_offer, roles=BUYERS, audited="billing.checkout_created"),
    "create_integration": Row(
        fill_integration, roles=ADMINS, foreign="project_not_found", audited="audience.integration_provisioning"
    ),
    "create_invitation": Row(fill_invitation, roles=ADMINS, audited="invitation.created"),
    "create_webhook_endpoint": Row(
        fill_webhook_endpoint, roles=ADMINS, foreign="project_not_found", audited="webhook_endpoint.created"
    ),
    "create_organization": Row(plain(json={"name": "Radio Westwind"}), audited="organization.created"),
    "create_project": Row(fill_project, roles=ADMINS, audited="project.created"),
    "delete_organization": Row(confirm_organization, roles=OWNERS),
    "delete_project": Row(make_project, roles=ADMINS, foreign="project_not_found"),
    "delete_webhook_endpoint": Row(
        make_webhook_endpoint,
        roles=ADMINS,
        foreign="webhook_endpoint_not_found",
        audited="webhook_endpoint.deleted",
    ),
    "create_ticket": Row(fill_ticket, roles=EVERYBODY, audited="support.ticket_created"),
    "deliver_event": Row(sign_event),
    "export_organization": Row(export_organization, roles=OWNERS, audited="organization.exported"),
    "export_project": Row(export_project, roles=ADMINS, foreign="project_not_found", audited="project.exported"),
    "get_caller": Row(plain()),
    "get_catalog": Row(plain()),
    "get_checkout": Row(make_checkout, roles=BUYERS, foreign="checkout_not_found"),
    "get_code": Row(make_code, roles=READERS, foreign="code_not_found"),
    "get_deletion_certificate": Row(make_certificate),
    "get_platform_settings": Row(plain()),
    # The Core under test has no worker: test_release_readiness.py lets one read evidence.
    "get_release_readiness": Row(store_evidence),
    "get_ticket": Row(make_ticket, roles=EVERYBODY, foreign="ticket_not_found"),
    "get_usage": Row(name_organization, roles=EVERYBODY),
    "get_webhook_endpoint": Row(make_webhook_endpoint, roles=ADMINS, foreign="webhook_endpoint_not_found"),
    "get_webhook_event": Row(make_webhook_event, roles=ADMINS, foreign="webhook_event_not_found"),
    "issue_code": Row(fill_code, roles=ADMINS, foreign="project_not_found", audited="code.issued"),
    "issue_codes": Row(fill_codes, roles=ADMINS, foreign="project_not_found", audited="code.batch_issued"),
    "list_api_keys": Row(name_organization, roles=ADMINS),
    "list_audit_entries": Row(name_organization, roles=ADMINS),
    "list_campaigns": Row(name_project, roles=EVERYBODY, foreign="project_not_found"),
    "list_codes": Row(name_organization, roles=READERS),
    "list_integrations": Row(name_project, roles=READERS, foreign="project_not_found"),
    "list_invitations": Row(name_organization, roles=ADMINS),
    "list_key_history": Row(plain()),
    "list_keys": Row(plain()),
    "list_members": Row(name_organization, roles=ADMINS),
    "list_offers": Row(plain()),
    "list_organizations": Row(plain()),
    "list_projects": Row(name_organization, roles=EVERYBODY),
    "list_subscriptions": Row(name_organization, roles=BUYERS),
    "list_webhook_deliveries": Row(make_webhook_deliveries, roles=ADMINS, foreign="webhook_endpoint_not_found"),
    "list_webhook_endpoints": Row(name_organization, roles=ADMINS),
    "list_tickets": Row(name_organization, roles=EVERYBODY),
    "open_portal": Row(find_portal, roles=BUYERS),
    "preview_organization_deletion": Row(preview_organization, roles=OWNERS),
    "preview_project_deletion": Row(preview_project, roles=ADMINS, foreign="project_not_found"),
    "put_offer": Row(fill_offer),
    "put_payment_provider": Row(plain(path={"provider": "card"}, json={"enabled": False})),
    "put_plan": Row(fill_plan),
    "put_audience_contract": Row(fill_contract),
    "put_accounting_customer": Row(fill_accounting_customer),
    # Null changes nothing: every test shares the Core under test.
    "put_platform_configuration": Row(plain(path={"name": "smtp_host"}, json={"value": None})),
    "put_platform_secret": Row(plain(path={"name": "smtp_password"}, json={"value": "a secret of the sweep"})),
    "read_audience_report": Row(make_integration, roles=READERS, foreign="integration_not_found"),
    "read_legacy_report": Row(name_project, roles=READERS, foreign="project_not_found"),
    "receive_card_event": Row(sign_card_event),
    "receive_checkout_notification": Row(notify_of_checkout),
    "receive_checkout_query": Row(notify_of_checkout),
    "receive_local_notification": Row(notify_of_payment),
    "receive_local_query": Row(notify_of_payment),
    "receive_desk_delivery": Row(sign_desk_delivery),
    "recover_code": Row(issue_one_before, roles=ADMINS, foreign="code_issue_not_found"),
    "recover_codes": Row(issue_two_before, roles=ADMINS, foreign="code_issue_not_found"),
    # Everybody may leave: test_remove_member.py.
    "remove_member": Row(remove_member, roles=EVERYBODY, foreign="member_not_found", audited="member.removed"),
    "rename_organization": Row(rename_organization, roles=ADMINS, audited="organization.updated"),
    "rename_project": Row(rename_project, roles=ADMINS, foreign="project_not_found", audited="project.updated"),
    "render_code": Row(make_code, roles=READERS, foreign="code_not_found"),
    "replace_integration_core_key": Row(
        make_integration, roles=ADMINS, foreign="integration_not_found", audited="audience.integration_core_key_update"
    ),
    "replay_webhook_events": Row(replay_webhooks, roles=ADMINS, foreign="webhook_endpoint_not_found"),
    "resolve": Row(make_token),
    "revoke_api_key": Row(make_key, roles=ADMINS, foreign="api_key_not_found", audited="api_key.revoked"),
    "revoke_code": Row(make_code, roles=ADMINS, foreign="code_not_found", audited="code.revoked"),
    "revoke_codes": Row(select_code, roles=ADMINS, foreign="code_not_found", audited="code.batch_revoked"),
    "revoke_integration": Row(
        make_integration, roles=ADMINS, foreign="integration_not_found", audited="audience.integration_revocation"
    ),
    "revoke_invitation": Row(
        make_invitation, roles=ADMINS, foreign="invitation_not_found", audited="invitation.revoked"
    ),
    "roll_webhook_secret": Row(
        make_webhook_endpoint,
        roles=ADMINS,
        foreign="webhook_endpoint_not_found",
        audited="webhook_endpoint.secret_rotated",
    ),
    "rotate_api_key_secret": Row(make_key, roles=ADMINS, foreign="api_key_not_found", audited="api_key.secret_rotated"),
    "rotate_integration_secret": Row(
        make_integration, roles=ADMINS, foreign="integration_not_found", audited="audience.integration_secret_rotation"
    ),
    "stop_campaign": Row(make_campaign, roles=ADMINS, foreign="campaign_not_found", audited="campaign.stopped"),
    "summarise_campaign": Row(make_campaign, roles=READERS, foreign="campaign_not_found"),
    "update_campaign": Row(change_campaign, roles=ADMINS, foreign="campaign_not_found", audited="campaign.updated"),
    "test_webhook_endpoint": Row(make_unreachable_endpoint, roles=ADMINS, foreign="webhook_endpoint_not_found"),
    "update_webhook_endpoint": Row(
        change_webhook_endpoint,
        roles=ADMINS,
        foreign="webhook_endpoint_not_found",
        audited="webhook_endpoint.updated",
    ),
    "verify_audit_log": Row(name_organization, roles=ADMINS),
}
CALLS: Final[Mapping[str, Prepare]] = {name: row.prepare for name, row in ROWS.items()}
