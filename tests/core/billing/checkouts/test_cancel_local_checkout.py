"""POST /v1/billing/checkouts/{checkout_id}/cancel for the local provider, which closes no page."""

import pytest
from support.api.core_client import Answer
from support.billing.local_purchase import LocalPurchase, begin_local_purchase, notify_of, set_payment
from support.database.rival import Rival
from support.outside.running_sandbox import RunningSandbox
from support.processes.fake_clock import FakeClock
from support.tenancy.people import People
from support.tenancy.tenant import Tenant

PATH = "/v1/billing/checkouts"
STATUSES = "SELECT status, reread_at IS NULL FROM checkouts ORDER BY created_at, id"
COUNTS = "SELECT share, verification_count FROM local_verifications"


async def cancel(tenant: Tenant, checkout_id: str) -> Answer:
    return await tenant.api.post(f"{PATH}/{checkout_id}/cancel", params=tenant.query)


@pytest.fixture
async def unpaid(tenant: Tenant, rival: Rival, local: RunningSandbox) -> LocalPurchase:
    """A checkout of the local provider whose page is open."""
    return await begin_local_purchase(tenant, rival, local, status="PENDING")


async def test_an_open_page_of_the_local_provider_keeps_its_checkout(
    tenant: Tenant, rival: Rival, local: RunningSandbox, unpaid: LocalPurchase
) -> None:
    """Nobody can close it, so it could take money for a purchase that nobody has."""
    shown = await tenant.api.get(f"{PATH}/{unpaid.checkout_id}", params=tenant.query)

    answer = await cancel(tenant, unpaid.checkout_id)

    assert (answer.status, answer.code) == (409, "checkout_not_cancellable")
    assert answer.json["detail"].endswith(f"ends by itself at {shown.json['expires_at']} at the latest.")
    assert await rival.rows(STATUSES) == [("pending", False)]
    assert await rival.audited("billing.checkout_cancelled") == []
    assert len(await local.calls("local")) == 1


@pytest.mark.parametrize(("status", "ended"), [("SUCCESS", "completed"), ("FAILURE", "failed"), ("EXPIRED", "expired")])
async def test_a_local_payment_that_has_ended_ends_its_checkout(
    tenant: Tenant, rival: Rival, local: RunningSandbox, unpaid: LocalPurchase, status: str, ended: str
) -> None:
    await set_payment(local, unpaid.payment_id, status=status)

    answer = await cancel(tenant, unpaid.checkout_id)

    assert (answer.status, answer.json["status"]) == (200, ended)
    assert await rival.rows(STATUSES) == [(ended, True)]
    assert await rival.rows("SELECT count(*) FROM subscriptions") == [(int(ended == "completed"),)]


async def test_an_unpaid_local_payment_is_asked_about_once_in_ten_seconds(
    tenant: Tenant, rival: Rival, local: RunningSandbox, unpaid: LocalPurchase, clock: FakeClock
) -> None:
    """A notification counts as a question too."""
    clock.frozen_at = clock.freeze().replace(second=0)
    await notify_of(tenant.api, unpaid)
    clock.advance(seconds=9)
    assert (await cancel(tenant, unpaid.checkout_id)).code == "checkout_not_cancellable"
    assert (len(await local.calls("local")), await rival.rows(COUNTS)) == (1, [("public", 1)])
    clock.advance(seconds=1)

    assert (await cancel(tenant, unpaid.checkout_id)).code == "checkout_not_cancellable"
    assert (len(await local.calls("local")), await rival.rows(COUNTS)) == (2, [("public", 2)])


async def test_an_organisation_asks_the_local_provider_as_often_as_one_address(
    tenant: Tenant, people: People, rival: Rival, local: RunningSandbox, unpaid: LocalPurchase, clock: FakeClock
) -> None:
    clock.frozen_at = clock.freeze().replace(second=0)
    for _ in range(10):
        assert (await cancel(tenant, unpaid.checkout_id)).code == "checkout_not_cancellable"
        await rival.run("UPDATE checkouts SET unpaid_at = NULL")

    refused = await cancel(tenant, unpaid.checkout_id)

    assert (refused.code, refused.headers["retry-after"]) == ("rate_limited", "60")
    other = await people.tenant_of("ada")
    theirs = await begin_local_purchase(other, rival, local, status="PENDING")
    assert (await cancel(other, theirs.checkout_id)).code == "checkout_not_cancellable"


async def test_the_limit_of_all_questions_holds(
    tenant: Tenant, rival: Rival, local: RunningSandbox, unpaid: LocalPurchase, clock: FakeClock
) -> None:
    minute = clock.freeze().replace(second=0, microsecond=0)
    await rival.run(
        "INSERT INTO local_verifications (minute, share, verification_count) VALUES (%s, 'public', 20)", minute
    )

    answer = await cancel(tenant, unpaid.checkout_id)

    assert (answer.code, await local.calls("local")) == ("rate_limited", [])
    assert answer.headers["retry-after"] == str(60 - clock.now().second)


async def test_a_local_payment_that_is_not_ours_ends_nothing(
    tenant: Tenant, rival: Rival, local: RunningSandbox, unpaid: LocalPurchase
) -> None:
    await set_payment(local, unpaid.payment_id, status="SUCCESS", answer={"amount": 1})

    assert (await cancel(tenant, unpaid.checkout_id)).code == "payment_not_verified"
    assert await rival.rows(STATUSES) == [("pending", False)]


@pytest.mark.parametrize("fault", ["refused", "server_error", "half_body"])
async def test_a_local_provider_that_fails_changes_nothing(
    tenant: Tenant, rival: Rival, local: RunningSandbox, unpaid: LocalPurchase, fault: str
) -> None:
    await local.misbehave("local", fault)

    assert (await cancel(tenant, unpaid.checkout_id)).code == "payment_provider_unavailable"
    assert await rival.rows(STATUSES) == [("pending", False)]
    assert len(await local.calls("local")) == 1
