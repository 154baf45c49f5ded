"""Providers behind TLS whose certificate is good, or is not: then nobody believes them, and nothing is lost."""

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.api.core_client import Answer, Api
from support.api.core_settings import core_settings
from support.billing.card_purchase import CARD_SECRET, WEBHOOK_SECRET, begin_purchase, deliver
from support.billing.local_purchase import PRIVATE_KEY, PUBLIC_KEY, begin_local_purchase, notify_of
from support.billing.offers import CARD_OFFER, LOCAL_OFFER
from support.database.rival import Rival
from support.outside.misbehaving_server import MisbehavingServer, answer
from support.outside.private_authority import PrivateAuthority, make_authority, tls_server
from support.outside.running_sandbox import RunningSandbox, running_sandbox
from support.processes.running_apps import running_core
from support.tenancy.platform_settings import put_setting
from support.tenancy.tenant import Tenant

from soundmark.kit.crypto.secret import Secret

HERE = "127.0.0.1"


@dataclass(frozen=True)
class Outside:
    """The providers behind TLS, and an organisation as a Core sees it that was to trust their authority."""

    tenant: Tenant
    payments: RunningSandbox
    accounting: MisbehavingServer

    async def buy(self, offer_id: str) -> Answer:
        return await self.tenant.api.post(
            "/v1/billing/checkouts", params=self.tenant.query, json={"offer_id": offer_id}
        )

    async def map_customer(self) -> Answer:
        path = f"/v1/billing/admin/dolibarr/customers/{self.tenant.organization_id}"
        return await self.tenant.api.call("PUT", path, json={"thirdparty_id": 7})


@contextlib.asynccontextmanager
async def outside(
    authority: PrivateAuthority, ca_file: Path | None, tenant: Tenant, database_url: Secret
) -> AsyncIterator[Outside]:
    """Run providers with a certificate of `authority`, and a Core that trusts the authorities in `ca_file`."""
    tls = authority.server_context()
    async with (
        running_sandbox(
            tls=tls, CARD_SECRET_KEY=CARD_SECRET, LOCAL_PUBLIC_KEY=PUBLIC_KEY, LOCAL_SECRET_KEY=PRIVATE_KEY
        ) as payments,
        tls_server(authority, answer(b'{"id": "7"}')) as accounting,
    ):
        settings = core_settings(
            database_url,
            card_api_url=payments.settings()["CARD_API_URL"],
            local_api_url=payments.settings()["LOCAL_API_URL"],
            accounting_base_url=accounting.url,
            accounting_api_key="key-of-the-accounting-system",
            accounting_tva_rate="19",
            extra_ca_file=ca_file,
        )
        async with running_core(settings, tenant.api.clock) as core:
            yield Outside(Tenant(core, tenant.organization_id, tenant.project_id), payments, accounting)


@pytest.fixture
async def configured(api: Api, card: RunningSandbox, local: RunningSandbox) -> None:
    """The credentials of both providers are stored."""
    assert (await card.calls("card"), await local.calls("local")) == ([], [])
    assert (await put_setting(api, "card_webhook_secret", WEBHOOK_SECRET)).status == 200


@pytest.mark.usefixtures("configured")
@pytest.mark.parametrize("flaw", ["unknown authority", "another address", "expired"])
async def test_a_provider_with_a_bad_certificate_is_not_believed(
    tenant: Tenant, rival: Rival, database_url: Secret, tmp_path: Path, flaw: str
) -> None:
    address = "127.0.0.2" if flaw == "another address" else HERE
    authority = make_authority(tmp_path, address, is_expired=flaw == "expired")
    ca_file = None if flaw == "unknown authority" else authority.ca_file
    async with outside(authority, ca_file, tenant, database_url) as providers:
        by_card = await begin_purchase(tenant, rival, providers.payments)
        locally = await begin_local_purchase(tenant, rival, providers.payments)
        refused = [
            await deliver(providers.tenant.api, by_card.event("invoice.paid")),
            await notify_of(providers.tenant.api, locally),
            await providers.buy(CARD_OFFER),
            await providers.buy(LOCAL_OFFER),
        ]
        unmapped = await providers.map_customer()
        asked = [*await providers.payments.calls("card"), *await providers.payments.calls("local")]

    assert {(each.status, each.code) for each in refused} == {(503, "payment_provider_unavailable")}
    assert (unmapped.status, unmapped.code) == (503, "accounting_unavailable")
    assert (asked, providers.accounting.requests) == ([], [])
    assert await rival.rows("SELECT provider, status FROM payment_receipts ORDER BY provider") == [
        ("card", "pending"),
        ("local", "pending"),
    ]
    pending = {checkout_id for (checkout_id,) in await rival.rows("SELECT id FROM checkouts WHERE status = 'pending'")}
    assert pending == {by_card.checkout_id, locally.checkout_id}
    for table in ("subscriptions", "accounting_customers"):
        assert await rival.rows(f"SELECT 1 FROM {table}") == []


@pytest.mark.usefixtures("configured")
async def test_a_provider_with_a_certificate_of_a_trusted_authority_is_believed(
    tenant: Tenant, rival: Rival, database_url: Secret, tmp_path: Path
) -> None:
    """`SOUNDMARK_EXTRA_CA_FILE` names the authority."""
    authority = make_authority(tmp_path, HERE)
    async with outside(authority, authority.ca_file, tenant, database_url) as providers:
        by_card = await begin_purchase(tenant, rival, providers.payments)
        locally = await begin_local_purchase(tenant, rival, providers.payments)
        taken = [
            await deliver(providers.tenant.api, by_card.event("invoice.paid")),
            await notify_of(providers.tenant.api, locally),
        ]
        mapped = await providers.map_customer()
        complaints = await providers.payments.complaints()

    assert [each.json for each in taken] == [{"status": "processed"}] * 2
    assert mapped.status == 200
    assert await rival.rows("SELECT provider FROM subscriptions ORDER BY provider") == [("card",), ("local",)]
    assert complaints == []
