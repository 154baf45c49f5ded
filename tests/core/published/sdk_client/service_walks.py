"""Walks through the groups of the client that serve an organisation: billing, webhooks, support, the platform."""

from datetime import UTC, datetime, timedelta

import pytest
from soundmark_sdk.client import (
    ApiProblem,
)
from support.processes.secret_leaks import remember_secret

from .conftest import Tenant


async def walk_billing(tenant: Tenant) -> None:
    catalog = tenant.client.catalog
    assert not (await catalog.put_provider("card", enabled=False)).enabled
    assert (await catalog.put_provider("local", enabled=True)).provider == "local"
    plan = await catalog.put_codes_plan("plan_studio", name="Studio", monthly_code_quota=5000, active=True)
    assert (plan.monthly_code_quota, plan.monthly_event_quota) == (5000, None)
    audience = await catalog.put_audience_plan("plan_reach", name="Reach", monthly_event_quota=50, active=True)
    assert (audience.monthly_code_quota, audience.monthly_event_quota) == (None, 50)
    card = await catalog.put_card_offer("offer_card", plan_id="plan_studio", price_reference="price_1", active=True)
    assert (card.price_reference, card.amount_minor) == ("price_1", None)
    local = await catalog.put_local_offer(
        "offer_local", plan_id="plan_studio", amount_minor=149_000, entitlement_months=1, active=True
    )
    assert (local.currency, local.amount_minor, local.price_reference) == ("TND", 149_000, None)
    contract = await catalog.put_audience_contract(
        tenant.organization_id,
        plan_id="plan_reach",
        contract_reference="2026/17",
        status="active",
        period_end=datetime.now(UTC) + timedelta(days=30),
    )
    assert (contract.status, contract.organization_id) == ("active", tenant.organization_id)
    customer = await catalog.put_accounting_customer(tenant.organization_id, thirdparty_id=7)
    assert (customer.thirdparty_id, customer.organization_name) == (7, "Radio Südlicht")
    whole = await catalog.get()
    assert [one.provider for one in whole.providers if one.enabled] == ["local"]
    assert {one.offer_id for one in whole.offers} == {"offer_card", "offer_local"}
    assert (whole.audience_contracts, whole.accounting_customers) == ((contract,), (customer,))

    billing, tenant_ids = tenant.client.billing, {"organization_id": tenant.organization_id}
    (offer,) = (await billing.offers(country="TN")).data
    assert (offer.id, offer.plan.monthly_quota, offer.entitlement_months) == ("offer_local", 5000, 1)
    with pytest.raises(ApiProblem) as unavailable:  # The provider has no credentials here.
        await billing.create_checkout("offer_local", **tenant_ids)
    assert unavailable.value.code == "payment_provider_unavailable"
    assert (await billing.pending_checkouts(**tenant_ids)).data == ()
    with pytest.raises(ApiProblem) as missing:
        await billing.get_checkout("bco_unknown", **tenant_ids)
    assert missing.value.code == "checkout_not_found"
    with pytest.raises(ApiProblem) as not_found:
        await billing.cancel_checkout("bco_unknown", **tenant_ids)
    assert not_found.value.code == "checkout_not_found"
    with pytest.raises(ApiProblem) as without_customer:
        await billing.open_portal(**tenant_ids)
    assert without_customer.value.code == "customer_unavailable"
    (subscription,) = [one async for one in tenant.client.subscriptions.list(**tenant_ids)]
    assert (subscription.provider, subscription.plan_name, subscription.status) == ("contract", "Reach", "active")
    assert (subscription.accounting.status, subscription.accounting.invoice_id) == ("not_scheduled", None)
    assert (await tenant.client.subscriptions.page(limit=1, **tenant_ids)).data == (subscription,)
    ended = await catalog.put_audience_contract(
        tenant.organization_id, plan_id="plan_reach", contract_reference="2026/17", status="cancelled"
    )
    assert ended.status == "cancelled"


async def walk_webhooks(tenant: Tenant) -> None:
    webhooks, tenant_ids = tenant.client.webhooks, {"organization_id": tenant.organization_id}
    made = await webhooks.create(
        "https://consumer.example.org/hooks", event_types={"code.revoked", "code.issued"}, **tenant_ids
    )
    remember_secret(made.secret)
    assert (made.event_types, made.project_id) == (("code.issued", "code.revoked"), None)
    assert made.secret not in repr(made)
    of_project = await webhooks.create(
        "https://consumer.example.org/all", project_id=tenant.project_id, description="all", **tenant_ids
    )
    remember_secret(of_project.secret)
    assert (of_project.event_types, of_project.project_id) == (None, tenant.project_id)
    endpoint = await webhooks.get(made.id, **tenant_ids)
    assert (endpoint.url, endpoint.enabled, endpoint.disabled_reason) == (made.url, True, None)
    assert [one.id async for one in webhooks.list(page_size=1, **tenant_ids)] == [of_project.id, made.id]
    assert (await webhooks.page(limit=1, **tenant_ids)).data[0].description == "all"
    changed = await webhooks.update(made.id, event_types=None, description="some", **tenant_ids)
    assert (changed.event_types, changed.description, changed.url) == (None, "some", made.url)
    rotated = await webhooks.rotate_secret(made.id, **tenant_ids)
    remember_secret(rotated.secret)
    assert rotated.secret != made.secret
    assert [one async for one in webhooks.deliveries(made.id, status="failed", **tenant_ids)] == []
    assert (await webhooks.deliveries_page(made.id, **tenant_ids)).data == ()
    now = datetime.now(UTC)
    replayed = await webhooks.replay(made.id, from_at=now - timedelta(days=1), to_at=now, **tenant_ids)
    assert replayed.replayed_count == 0, "no worker has turned acts into events here"
    for missing in (
        webhooks.get_event("evn_1", **tenant_ids),
        webhooks.replay_events(made.id, ["evn_1"], **tenant_ids),
    ):
        with pytest.raises(ApiProblem) as unknown:
            await missing
        assert unknown.value.code == "webhook_event_not_found"
    assert not (await webhooks.update(made.id, enabled=False, **tenant_ids)).enabled
    tested = await webhooks.test(made.id, **tenant_ids)
    assert (tested.status_code, tested.error is None) == (None, False), "there is no such host"
    await webhooks.delete(made.id, **tenant_ids)
    assert [one.id async for one in webhooks.list(**tenant_ids)] == [of_project.id]


async def walk_support(tenant: Tenant) -> None:
    tickets, tenant_ids = tenant.client.tickets, {"organization_id": tenant.organization_id}
    request_id = "supreq_of-the-walk-0001"
    for _ in range(2):  # There is no desk here, so the ticket waits.
        with pytest.raises(ApiProblem) as unavailable:
            await tickets.create("No sound", "It is quiet.", request_id=request_id, **tenant_ids)
        assert unavailable.value.code == "support_unavailable"
    (listed,) = (await tickets.page(limit=1, **tenant_ids)).data
    assert (listed.request_id, listed.subject, listed.status) == (request_id, "No sound", "pending")
    assert [one async for one in tickets.list(**tenant_ids)] == [listed]
    with pytest.raises(ApiProblem) as unread:
        await tickets.get(listed.id, **tenant_ids)
    assert unread.value.code == "support_unavailable"
    with pytest.raises(ApiProblem) as waiting:
        await tickets.reply(listed.id, "It is still quiet.", **tenant_ids)
    assert waiting.value.code == "support_unavailable"
    with pytest.raises(ValueError, match="supreq_"):
        await tickets.reply(listed.id, "It is still quiet.", request_id="too short", **tenant_ids)
    with pytest.raises(ValueError, match="supreq_"):
        await tickets.create("No sound", "It is quiet.", request_id="too short", **tenant_ids)


async def walk_platform(tenant: Tenant) -> None:
    platform = tenant.client.platform
    suspended = await platform.suspend(tenant.organization_id, "Spam.")
    assert suspended.suspension_reason == "Spam."
    assert suspended.packs_valid_until is not None  # `walk_codes` made a pack.
    assert [one.id async for one in platform.organizations(status="suspended", page_size=1)] == [tenant.organization_id]
    restored = await platform.restore(tenant.organization_id)
    assert restored.suspended_at is None
    assert (await platform.organizations_page(search=tenant.organization_id)).data == (restored,)
    assert (await platform.put_configuration("smtp_host", "mail.example.org")).source == "database"
    assert (await platform.put_secret("smtp_password", "correct horse battery staple")).configured
    (report,) = [one async for one in platform.abuse_reports(status="open", page_size=1)]
    assert (report.organization_id, report.category, report.text) == (tenant.organization_id, "spam", "It is spam.")
    closed = await platform.put_abuse_report(report.id, "closed", "Warned.")
    assert (closed.note, closed.closed_at is None) == ("Warned.", False)
    assert (await platform.abuse_reports_page(status="closed")).data == (closed,)
    settings = await platform.settings()
    assert settings.configuration["smtp_host"].value == "mail.example.org"
    assert settings.secrets["smtp_password"].configured
    assert (await platform.put_configuration("smtp_host", None)).value is None
    tested = await platform.test_system("card")
    assert (tested.system, tested.ok, tested.code) == ("card", False, "not_configured")
    assert [one async for one in platform.jobs(page_size=1)] == []
    assert (await platform.jobs_page(state="retrying")).data == ()
    with pytest.raises(ApiProblem) as no_job:
        await platform.retry_job("1")
    assert no_job.value.code == "job_not_found"
    with pytest.raises(ApiProblem) as unknown:  # No worker has looked for evidence here.
        await platform.release_readiness()
    assert unknown.value.code == "release_readiness_unavailable"
