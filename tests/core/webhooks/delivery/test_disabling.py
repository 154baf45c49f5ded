"""Endpoints that are disabled, deleted or closed while deliveries wait, and who hears of it."""

from datetime import UTC, datetime
from typing import Any

import pytest
from support.api.core_client import Api
from support.database.rival import Rival
from support.outside.mail_server import MailServer, configure_mail, running_mail_server
from support.processes.fake_clock import FakeClock
from support.tenancy.tenant import Tenant
from support.webhooks.consumer import WebhookConsumer

from soundmark.core.context import Context
from soundmark.core.domain.webhooks.attempt import FAILING_FOR
from soundmark.core.features.webhooks.delivery import jobs
from soundmark.core.features.webhooks.delivery.storing import TELL
from soundmark.core.features.webhooks.fan_out.service import fan_out
from soundmark.kit.postgres.job_queue import Later

from .conftest import Delivered, Endpoints, Steps

GIVEN_UP = Delivered("failed", 0, None, "endpoint_disabled", None)


async def test_410_fails_the_delivery_and_disables_the_endpoint(
    tenant: Tenant, consumer: WebhookConsumer, endpoints: Endpoints, steps: Steps, rival: Rival
) -> None:
    """What it misses from then on is not sent; nobody gets a mail, because the consumer decided it."""
    endpoint_id = await endpoints.make(consumer.url, event_types=["campaign.created"])
    consumer.otherwise = 410
    await tenant.make_campaign("First")
    await steps.deliver()
    assert await endpoints.delivery(endpoint_id) == Delivered("failed", 1, 410, "status_not_successful", None)
    assert (await endpoints.read(endpoint_id))[:2] == (False, "gone")
    metadata = {"disabled_reason": "gone", "enabled": False, "endpoint_id": endpoint_id}
    assert await rival.audited("webhook_endpoint.updated") == [("system soundmark", None, metadata)]
    await tenant.make_campaign("Second")
    await steps.deliver()
    assert len(consumer.messages) == 1
    assert await _queued(rival, tenant, TELL) == []


@pytest.mark.parametrize("statement", ["UPDATE webhook_endpoints SET enabled = false", "DELETE FROM webhook_endpoints"])
async def test_deliveries_that_wait_for_a_disabled_or_deleted_endpoint_are_given_up(
    tenant: Tenant, consumer: WebhookConsumer, endpoints: Endpoints, steps: Steps, rival: Rival, statement: str
) -> None:
    endpoint_id = await endpoints.make(consumer.url)
    consumer.otherwise = "held"
    for number in range(9):
        await tenant.make_campaign(f"Evening {number}")
    await steps.begin()
    await rival.run(statement)
    consumer.release.set()
    await steps.deliver()
    await steps.deliver()
    deliveries = await endpoints.deliveries(endpoint_id)
    assert sorted(found.status for found in deliveries) == ["delivered"] * 8 + ["failed"]
    assert GIVEN_UP in deliveries
    assert len(consumer.messages) == 8


async def test_an_organisation_that_is_deleted_during_an_attempt_is_left_alone(
    tenant: Tenant, consumer: WebhookConsumer, endpoints: Endpoints, steps: Steps, rival: Rival
) -> None:
    consumer.otherwise = "held"
    endpoint_id = await endpoints.make(consumer.url)
    await tenant.make_campaign()
    await steps.begin()
    await consumer.until_arrived(1)
    consumer.otherwise = 410
    for table in ("webhook_deliveries", "webhook_events", "webhook_endpoints"):
        await rival.run(f"DELETE FROM {table}")
    consumer.release.set()
    await steps.deliver()
    assert await endpoints.deliveries(endpoint_id) == []


async def test_five_days_of_nothing_but_failures_disable_an_endpoint_and_a_success_begins_anew(
    tenant: Tenant, consumer: WebhookConsumer, endpoints: Endpoints, steps: Steps, rival: Rival, clock: FakeClock
) -> None:
    began = clock.freeze()
    endpoint_id = await endpoints.make(consumer.url)
    consumer.otherwise = 500

    async def fail_once(name: str) -> None:
        await tenant.make_campaign(name)
        await steps.deliver()

    await fail_once("First")
    assert await endpoints.read(endpoint_id) == (True, None, began)
    clock.advance(days=4)
    consumer.reactions.append(200)
    await fail_once("Second")
    assert await endpoints.read(endpoint_id) == (True, None, None)
    again = clock.now()
    await fail_once("Third")
    clock.advance(seconds=FAILING_FOR.total_seconds(), milliseconds=-1)
    await fail_once("Fourth")
    assert await endpoints.read(endpoint_id) == (True, None, again)
    clock.advance(milliseconds=1)
    await fail_once("Fifth")
    assert await endpoints.read(endpoint_id) == (False, "failing", again)
    expected = {"organization_id": tenant.organization_id, "endpoint_id": endpoint_id}
    assert await _queued(rival, tenant, TELL) == [expected]


@pytest.mark.parametrize("meanwhile", ["another attempt succeeds", "somebody enables it"])
async def test_an_attempt_that_began_before_a_new_beginning_disables_nothing_when_it_fails(
    tenant: Tenant,
    consumer: WebhookConsumer,
    endpoints: Endpoints,
    steps: Steps,
    rival: Rival,
    clock: FakeClock,
    meanwhile: str,
) -> None:
    """Its delivery is tried again, as after every other failure."""
    clock.freeze()
    endpoint_id = await endpoints.make(consumer.url, event_types=["campaign.created"])
    await rival.run("UPDATE webhook_endpoints SET failing_since = %s", clock.now() - FAILING_FOR)
    consumer.otherwise = "held"
    await tenant.make_campaign("Slow")
    await steps.begin()
    await consumer.until_arrived(1)
    if meanwhile == "somebody enables it":
        path = f"/v1/webhook-endpoints/{endpoint_id}"
        await tenant.api.call("PATCH", path, params=tenant.query, json={"enabled": True})
    else:
        await rival.run("UPDATE webhook_endpoints SET failing_since = NULL")
    consumer.otherwise = 500
    consumer.release.set()
    await steps.dispatcher.finish_attempts()
    assert await endpoints.read(endpoint_id) == (True, None, clock.now())
    assert (await endpoints.delivery(endpoint_id)).status == "pending"


async def test_410_of_an_earlier_url_disables_nothing(
    tenant: Tenant, consumer: WebhookConsumer, endpoints: Endpoints, steps: Steps, rival: Rival
) -> None:
    endpoint_id = await endpoints.make(consumer.url)
    consumer.otherwise = "held"
    await tenant.make_campaign()
    await steps.begin()
    await consumer.until_arrived(1)
    await rival.run("UPDATE webhook_endpoints SET url = 'https://hooks.example.org/new'")
    consumer.otherwise = 410
    consumer.release.set()
    await steps.dispatcher.finish_attempts()
    assert (await endpoints.read(endpoint_id))[:2] == (True, None)


async def test_a_success_begins_anew_though_its_attempt_began_before_the_first_failure(
    tenant: Tenant, consumer: WebhookConsumer, endpoints: Endpoints, steps: Steps
) -> None:
    endpoint_id = await endpoints.make(consumer.url, event_types=["campaign.created"])
    consumer.reactions += ["held", 500]
    for name in ("Slow", "Refused"):
        await tenant.make_campaign(name)
    await steps.begin()
    await consumer.until_arrived(2)
    while (await endpoints.read(endpoint_id))[2] is None:
        await steps.begin()
    consumer.release.set()
    await steps.dispatcher.finish_attempts()
    assert await endpoints.read(endpoint_id) == (True, None, None)


async def test_a_clock_that_was_set_forward_and_back_disables_nothing(
    tenant: Tenant, consumer: WebhookConsumer, endpoints: Endpoints, steps: Steps, clock: FakeClock
) -> None:
    clock.freeze()
    endpoint_id = await endpoints.make(consumer.url)
    consumer.otherwise = 500
    clock.advance(days=30)
    await tenant.make_campaign("In the future")
    await steps.deliver()
    clock.advance(days=-30)
    await tenant.make_campaign("Now")
    await steps.deliver()
    assert (await endpoints.read(endpoint_id))[0]


async def test_a_clock_that_was_set_back_delays_no_delivery(
    tenant: Tenant, consumer: WebhookConsumer, endpoints: Endpoints, steps: Steps, clock: FakeClock
) -> None:
    """The next attempt is never further ahead than the pause before it, neither the first nor a later one."""
    clock.freeze()
    endpoint_id = await endpoints.make(consumer.url)
    clock.advance(hours=3)
    consumer.reactions.append(500)
    await tenant.make_campaign("Attempted once")
    await steps.deliver()
    await tenant.make_campaign("Not attempted")
    while await fan_out(steps.ctx):
        pass
    clock.advance(hours=-3)
    await steps.deliver()
    assert [found.status for found in await endpoints.deliveries(endpoint_id)] == ["pending", "pending"]
    await steps.dispatcher.watch_once()
    await steps.deliver()
    await steps.deliver()
    assert [found.status for found in await endpoints.deliveries(endpoint_id)] == ["delivered", "delivered"]


async def test_a_pause_of_the_contract_is_not_taken_for_a_clock_that_was_set_back(
    tenant: Tenant, consumer: WebhookConsumer, endpoints: Endpoints, steps: Steps, clock: FakeClock
) -> None:
    clock.freeze()
    consumer.otherwise = 500
    endpoint_id = await endpoints.make(consumer.url)
    await tenant.make_campaign()
    await steps.deliver()
    found = await endpoints.delivery(endpoint_id)
    await steps.dispatcher.watch_once()
    assert await endpoints.delivery(endpoint_id) == found


@pytest.fixture
async def mails(api: Api) -> Any:
    """A mail server that the platform uses."""
    async with running_mail_server() as running:
        await configure_mail(api, running)
        yield running


async def test_every_owner_is_told_by_mail(
    tenant: Tenant, ctx: Context, endpoints: Endpoints, rival: Rival, mails: MailServer
) -> None:
    """The mail contains ids only: no name and no URL that somebody else chose."""
    for subject_id, role in (("second", "owner"), ("third", "admin")):
        await tenant.make_member(rival, subject_id, role)
    endpoint_id = await endpoints.make("https://hooks.example.org/secret-path")
    await jobs.tell_owners(ctx, organization_id=tenant.organization_id, endpoint_id=endpoint_id)
    queued = await _queued(rival, tenant, jobs.MAIL)
    assert len(queued) == 2
    for args in queued:
        await _mail(ctx, args)
    assert sorted(mail.recipient for mail in mails.received) == ["operator@localhost", "second@example.org"]
    text = mails.received[0].part("plain")
    assert endpoint_id in text
    assert tenant.organization_id in text
    assert "secret-path" not in text
    assert mails.received[0].message["Auto-Submitted"] == "auto-generated"


async def test_the_mails_count_against_the_limit_of_the_day(
    tenant: Tenant, ctx: Context, rival: Rival, mails: MailServer, clock: FakeClock
) -> None:
    clock.freeze()
    for number in range(7):
        await jobs.tell_owners(ctx, organization_id=tenant.organization_id, endpoint_id=f"whe_{number:022}")
    assert len(await _queued(rival, tenant, jobs.MAIL)) == 5
    assert mails.received == []


async def test_a_mail_is_tried_five_times(tenant: Tenant, ctx: Context, mails: MailServer, clock: FakeClock) -> None:
    now = clock.freeze()
    mails.replies["RCPT"] = "451 try again later"
    args = {"organization_id": tenant.organization_id, "endpoint_id": f"whe_{0:022}", "subject_id": "operator"}
    pauses = []
    for number in range(5):
        try:
            await _mail(ctx, {**args, "at_s": str(int(now.timestamp()))}, earlier_attempts=number)
        except Later as later:
            pauses.append((later.at - now).total_seconds())
    assert pauses == [30, 120, 480, 1920]


async def test_somebody_who_no_longer_owns_the_organisation_gets_no_mail(
    tenant: Tenant, ctx: Context, mails: MailServer, clock: FakeClock
) -> None:
    args = {"organization_id": tenant.organization_id, "endpoint_id": f"whe_{0:022}", "subject_id": "stranger"}
    await _mail(ctx, {**args, "at_s": str(int(clock.now().timestamp()))})
    assert mails.received == []


async def test_without_a_mail_server_nothing_is_queued(tenant: Tenant, ctx: Context, rival: Rival) -> None:
    await jobs.tell_owners(ctx, organization_id=tenant.organization_id, endpoint_id=f"whe_{0:022}")
    assert await _queued(rival, tenant, jobs.MAIL) == []


async def _queued(rival: Rival, tenant: Tenant, task: str) -> list[dict[str, str]]:
    """Return the arguments of the organisation's queued jobs of a task."""
    rows = await rival.rows(
        "SELECT args FROM procrastinate_jobs WHERE task_name = %s AND args->>'organization_id' = %s",
        task,
        tenant.organization_id,
    )
    return [args for (args,) in rows]


async def _mail(ctx: Context, args: dict[str, str], *, earlier_attempts: int = 0) -> None:
    await jobs.mail_owner(
        ctx,
        organization_id=args["organization_id"],
        endpoint_id=args["endpoint_id"],
        subject_id=args["subject_id"],
        at=datetime.fromtimestamp(int(args["at_s"]), UTC),
        earlier_attempts=earlier_attempts,
    )
