"""One payment is asked about at most once in ten seconds, unless the question failed; nothing is lost by that."""

import asyncio

import pytest
from support.api.core_client import Api
from support.billing.local_purchase import LocalPurchase, begin_local_purchase, new_peer, notify_of, set_payment
from support.database.rival import Rival
from support.outside.running_sandbox import RunningSandbox
from support.processes.fake_clock import FakeClock
from support.tenancy.people import People
from support.tenancy.tenant import Tenant

from soundmark.core.context import Context
from soundmark.core.features.billing.webhooks.rereads import reread_local

PENDING, PROCESSED = {"status": "pending"}, {"status": "processed"}
COUNTS = "SELECT share, verification_count FROM local_verifications ORDER BY share"


@pytest.fixture
async def unpaid(tenant: Tenant, rival: Rival, local: RunningSandbox, clock: FakeClock) -> LocalPurchase:
    """A payment that is still open, at the beginning of a minute: questions are counted by the minute."""
    clock.frozen_at = clock.freeze().replace(second=0)
    return await begin_local_purchase(tenant, rival, local, status="PENDING")


async def pay(local: RunningSandbox, purchase: LocalPurchase) -> None:
    await set_payment(local, purchase.payment_id, status="SUCCESS")


async def test_for_ten_seconds_an_unpaid_payment_is_not_asked_about_again(
    api: Api, people: People, rival: Rival, local: RunningSandbox, clock: FakeClock, unpaid: LocalPurchase
) -> None:
    """By no process, and it counts in no limit."""
    peer = new_peer()
    assert (await notify_of(api, unpaid)).json == PENDING
    clock.advance(seconds=9.999)
    for _ in range(40):
        assert (await notify_of(api, unpaid, peer=peer)).json == PENDING
    assert (await notify_of(people.api, unpaid)).json == PENDING
    assert (len(await local.calls("local")), await rival.rows(COUNTS)) == (1, [("public", 1)])
    clock.advance(seconds=0.001)

    assert (await notify_of(people.api, unpaid)).json == PENDING
    assert (len(await local.calls("local")), await rival.rows(COUNTS)) == (2, [("public", 2)])


@pytest.mark.parametrize("status", ["SUCCESS", "FAILURE", "PENDING"])
async def test_a_job_asks_once_for_the_notification_that_was_not_asked_about(
    api: Api, work: Context, rival: Rival, local: RunningSandbox, clock: FakeClock, unpaid: LocalPurchase, status: str
) -> None:
    """The provider does not send it again."""
    await notify_of(api, unpaid)
    clock.advance(seconds=3)
    await set_payment(local, unpaid.payment_id, status=status)
    assert (await notify_of(api, unpaid)).json == PENDING
    clock.advance(seconds=6.999)
    assert (await reread_local(work), len(await local.calls("local"))) == (0, 1)
    clock.advance(seconds=0.001)

    assert await reread_local(work) == (status != "PENDING")

    assert (len(await local.calls("local")), await rival.rows(COUNTS)) == (2, [("jobs", 1), ("public", 1)])
    ends = {"SUCCESS": "completed", "FAILURE": "failed", "PENDING": "pending"}
    assert await rival.rows("SELECT status FROM checkouts") == [(ends[status],)]
    clock.advance(seconds=60)
    assert (await reread_local(work), len(await local.calls("local"))) == (0, 2)


async def test_a_question_of_the_job_begins_ten_seconds_too(
    api: Api, work: Context, rival: Rival, local: RunningSandbox, clock: FakeClock, unpaid: LocalPurchase
) -> None:
    await notify_of(api, unpaid)
    clock.advance(minutes=2)
    await reread_local(work)
    clock.advance(seconds=9)
    assert (await notify_of(api, unpaid)).json == PENDING
    assert len(await local.calls("local")) == 2

    clock.advance(seconds=1)
    await pay(local, unpaid)
    assert await reread_local(work) == 1
    assert await rival.rows("SELECT status FROM payment_receipts") == [("processed",)]


async def test_the_job_waits_for_the_ten_seconds_of_a_notification(
    api: Api, work: Context, local: RunningSandbox, clock: FakeClock, unpaid: LocalPurchase
) -> None:
    """Its time had come by itself."""
    clock.advance(seconds=115)
    await notify_of(api, unpaid)
    clock.advance(seconds=9)
    assert (await reread_local(work), len(await local.calls("local"))) == (0, 1)
    clock.advance(seconds=1)
    await pay(local, unpaid)
    assert (await reread_local(work), len(await local.calls("local"))) == (1, 2)


async def test_the_job_does_not_ask_about_what_a_notification_has_just_asked_about(
    api: Api,
    work: Context,
    tenant: Tenant,
    rival: Rival,
    local: RunningSandbox,
    clock: FakeClock,
    unpaid: LocalPurchase,
) -> None:
    """It had listed both; the provider was slow about the first."""
    other = await begin_local_purchase(tenant, rival, local, status="PENDING")
    await rival.run("UPDATE checkouts SET reread_at = reread_at + interval '1 s' WHERE id = %s", other.checkout_id)
    clock.advance(minutes=3)
    await local.hold("local")
    rereading = asyncio.create_task(reread_local(work))
    await local.until_held("local")
    assert (await notify_of(api, other)).json == PENDING
    await local.release("local")

    assert (await rereading, len(await local.calls("local"))) == (0, 2)
    due = await rival.rows("SELECT id FROM checkouts WHERE reread_at <= %s", clock.now())
    assert due == [(other.checkout_id,)], f"{unpaid.payment_id} was asked about, the other one is still due"


@pytest.mark.parametrize(("fault", "status"), [("refused", 503), ("html", 422), ("lost_answer", 503)])
async def test_a_question_that_failed_begins_no_ten_seconds(
    api: Api, rival: Rival, local: RunningSandbox, unpaid: LocalPurchase, fault: str, status: int
) -> None:
    """Otherwise the provider's retry would be answered, and it would send no other."""
    await local.misbehave("local", fault)
    assert (await notify_of(api, unpaid)).status == status
    await pay(local, unpaid)

    assert (await notify_of(api, unpaid)).json == PROCESSED
    assert await rival.rows("SELECT unpaid_at FROM checkouts") == [(None,)]


async def test_a_failed_question_leaves_the_ten_seconds_of_the_one_before(
    api: Api, local: RunningSandbox, clock: FakeClock, unpaid: LocalPurchase
) -> None:
    await notify_of(api, unpaid)
    clock.advance(seconds=10)
    await local.misbehave("local", "refused")
    assert (await notify_of(api, unpaid)).status == 503
    await pay(local, unpaid)
    assert (await notify_of(api, unpaid)).json == PROCESSED


async def ask_slowly(api: Api, local: RunningSandbox, purchase: LocalPurchase, *, count: int = 3) -> list[asyncio.Task]:  # type: ignore[type-arg]  # of answers
    """Begin notifications of one payment; return their tasks when the provider has worked on the first question."""
    first = asyncio.create_task(notify_of(api, purchase))
    await local.until_held("local")
    tasks = [first, *(asyncio.create_task(notify_of(api, purchase)) for _ in range(count - 1))]
    # The others reach the question that is under way: their look-ups are committed before these begin and end.
    for _ in range(3):
        await notify_of(api, await _unknown(purchase))
    return tasks


async def _unknown(purchase: LocalPurchase) -> LocalPurchase:
    return LocalPurchase(
        purchase.organization_id, purchase.checkout_id, "unknown-payment", purchase.secret, purchase.began_at
    )


@pytest.mark.parametrize("status", ["PENDING", "SUCCESS"])
async def test_notifications_at_once_share_one_question(
    api: Api, work: Context, rival: Rival, local: RunningSandbox, clock: FakeClock, unpaid: LocalPurchase, status: str
) -> None:
    """If it was asked before the payment was made, a job asks for the others."""
    await set_payment(local, unpaid.payment_id, status=status)
    await local.hold("local")
    asking = await ask_slowly(api, local, unpaid)
    await local.release("local")

    answers = [(await each).json for each in asking]

    assert answers == [PENDING if status == "PENDING" else PROCESSED] * 3
    assert (len(await local.calls("local")), await rival.rows(COUNTS)) == (1, [("public", 1)])
    clock.advance(seconds=10)
    assert (await reread_local(work), len(await local.calls("local"))) == (0, 2 if status == "PENDING" else 1)


async def test_notifications_at_once_share_a_failure(
    api: Api, rival: Rival, local: RunningSandbox, unpaid: LocalPurchase
) -> None:
    """Each sender learns of it, and the next notification asks."""
    await set_payment(local, unpaid.payment_id, status="SUCCESS", answer={"amount": 1})
    await local.hold("local")
    asking = await ask_slowly(api, local, unpaid)
    await local.release("local")

    assert [(await each).code for each in asking] == ["payment_not_verified"] * 3
    assert (len(await local.calls("local")), await rival.rows(COUNTS)) == (1, [("public", 1)])
    await set_payment(local, unpaid.payment_id, answer={})
    assert (await notify_of(api, unpaid)).json == PROCESSED


async def test_a_client_within_its_limit_is_not_refused_for_another_one(
    api: Api, rival: Rival, local: RunningSandbox, unpaid: LocalPurchase, tenant: Tenant
) -> None:
    """Both notify of one payment at once, and the first is over the limit of its address."""
    peer = new_peer()
    for _ in range(10):
        other = await begin_local_purchase(tenant, rival, local)
        assert (await notify_of(api, other, peer=peer)).json == PROCESSED
    await pay(local, unpaid)
    async with rival.holding("SELECT FROM local_verifications FOR UPDATE"):
        first = await rival.while_waiting(notify_of(api, unpaid, peer=peer))
        second = asyncio.create_task(notify_of(api, unpaid))
        await notify_of(api, await _unknown(unpaid))

    assert ((await first).status, (await second).json) == (429, PROCESSED)


async def test_two_processes_that_ask_at_once_grant_once(
    api: Api, people: People, rival: Rival, local: RunningSandbox, unpaid: LocalPurchase
) -> None:
    await pay(local, unpaid)
    async with rival.holding("SELECT FROM checkouts FOR UPDATE"):
        both = [asyncio.create_task(notify_of(each, unpaid)) for each in (api, people.api)]
        await rival.until_someone_waits(2)

    assert [(await each).json for each in both] == [PROCESSED] * 2
    assert await rival.rows("SELECT count(*) FROM subscriptions") == [(1,)]


async def test_of_two_answers_that_overlap_the_question_that_began_later_counts(
    api: Api, people: People, rival: Rival, local: RunningSandbox, clock: FakeClock, unpaid: LocalPurchase
) -> None:
    """The first process stores its answer last."""
    await local.hold("local")
    first = asyncio.create_task(notify_of(api, unpaid))
    await local.until_held("local")
    clock.advance(seconds=5)
    assert (await notify_of(people.api, unpaid)).json == PENDING
    await local.release("local")
    assert (await first).json == PENDING
    assert await rival.rows("SELECT unpaid_at FROM checkouts") == [(clock.now(),)]
