"""Nothing of a payer, and no reference or secret, leaves the memory in which an event is reconciled."""

import pytest
from prometheus_client import REGISTRY, generate_latest
from structlog.testing import capture_logs
from support.billing.card_purchase import SEVEN_EVENTS, begin_purchase, deliver, deliver_bytes
from support.billing.local_purchase import PATH, begin_local_purchase, notify, notify_of
from support.database.rival import Rival
from support.outside.running_sandbox import RunningSandbox
from support.tenancy.tenant import Tenant

# Where the references of a purchase have to be, so that it can be asked about and its portal opened.
REFERENCES = {"checkouts", "subscriptions", "card_customers", "offers"}
PAYERS = "mark.payer|MARK Payer|MARK4242|whsec|sk_test"
# The local provider's notifications are known by the id of their payment.
LEDGER = "SELECT event_type || status || coalesce(currency, '') FROM payment_receipts"


@pytest.mark.usefixtures("local")
async def test_nothing_that_was_planted_in_a_purchase_is_found_elsewhere(
    tenant: Tenant, rival: Rival, card: RunningSandbox, local: RunningSandbox, capfd: pytest.CaptureFixture[str]
) -> None:
    answers = []
    with capture_logs() as logs:
        purchase = await begin_purchase(tenant, rival, card)
        answers += [await deliver(tenant.api, purchase.event(kind)) for kind in SEVEN_EVENTS]
        answers.append(await deliver_bytes(tenant.api, b"{}", "t=1,v1=MARK"))
        crossed = await begin_purchase(tenant, rival, card, price="price_MARKforeign")
        answers.append(await deliver(tenant.api, crossed.event("invoice.paid")))
        await crossed.withdraw(card)
        answers.append(await deliver(tenant.api, crossed.event("invoice.paid")))
        for status in ("SUCCESS", "FAILURE", "PENDING"):
            paid = await begin_local_purchase(tenant, rival, local, status=status)
            answers.append(await notify_of(tenant.api, paid))
        wrong = await begin_local_purchase(tenant, rival, local, amount=1)
        answers += [await notify_of(tenant.api, wrong), await notify(tenant.api, f"{PATH}/MARKunknown")]

    assert len({answer.status for answer in answers}) >= 5, "every kind of answer was seen"
    seen = [*(answer.body.decode() + str(answer.headers) for answer in answers), str(logs), str(capfd.readouterr())]
    metrics = generate_latest(REGISTRY).decode()
    assert [text for text in [*seen, metrics] if "MARK" in text] == []
    assert "soundmark_payment_notifications_total" in metrics
    tables = await rival.rows("SELECT tablename::text FROM pg_tables WHERE schemaname = 'public'")
    for (name,) in tables:
        if name not in REFERENCES | {"payment_receipts", "platform_secrets"}:
            assert await rival.rows(f"SELECT 1 FROM {name} AS t WHERE to_jsonb(t)::text ~ 'MARK' LIMIT 1") == [], name
    for (name,) in tables:
        assert await rival.rows(f"SELECT 1 FROM {name} AS t WHERE to_jsonb(t)::text ~ %s LIMIT 1", PAYERS) == [], name
    assert "MARK" not in str(await rival.rows(LEDGER))
    assert await rival.rows("SELECT 1 FROM payment_receipts WHERE provider = 'card' AND event_id ~ 'MARK'") == []
