"""Attempts to deliver an event: what is sent, what an answer means, and when it is repeated."""

import asyncio
from datetime import timedelta

import pytest
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock
from support.processes.running_apps import make_worker
from support.tenancy.tenant import Tenant
from support.webhooks.consumer import Reaction, WebhookConsumer, running_consumer
from support.webhooks.replays import ALWAYS, replay

from soundmark.core.context import Context
from soundmark.core.domain.webhooks.attempt import LEASE
from soundmark.core.domain.webhooks.delivery import RETRY_AFTER
from soundmark.core.domain.webhooks.event import WebhookEvent, render_body
from soundmark.core.features.webhooks.delivery import dispatcher as dispatching
from soundmark.core.features.webhooks.delivery import sending
from soundmark.core.features.webhooks.delivery.lanes import OF_ENDPOINT_MAX
from soundmark.core.features.webhooks.fan_out.service import fan_out
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.http.outbound import guarded_client
from soundmark.kit.http.responses.problems import DatabaseUnavailable
from soundmark.kit.postgres.notifications import Listener

from .conftest import NEXT_SECRET, SECRET, Delivered, Endpoints, Steps


async def test_a_message_is_the_rendered_event_with_the_headers_of_standard_webhooks(
    tenant: Tenant, consumer: WebhookConsumer, endpoints: Endpoints, steps: Steps, rival: Rival, clock: FakeClock
) -> None:
    now = clock.freeze()
    endpoint_id = await endpoints.make(f"{consumer.url}/hooks?from=soundmark")
    await tenant.make_campaign()
    await steps.deliver()
    (row,) = await rival.rows(
        "SELECT organization_id, id, project_id, type, actor_type, actor_id, data, created_at FROM webhook_events"
    )
    (message,) = consumer.messages
    assert message.path == "/hooks?from=soundmark"
    assert message.body == render_body(WebhookEvent(*row))
    assert message.id == row[1]
    assert message.headers["webhook-timestamp"] == str(int(now.timestamp()))
    assert message.headers["content-type"] == "application/json"
    assert message.headers["user-agent"].startswith("Soundmark")
    assert message.signed_by(SECRET)
    assert "," not in message.headers["webhook-signature"].removeprefix("v1,"), "one signature"
    assert await endpoints.delivery(endpoint_id) == Delivered("delivered", 1, 204, None, None)
    await steps.deliver()
    assert len(consumer.messages) == 1


async def test_every_attempt_has_the_trace_of_the_act(
    tenant: Tenant, consumer: WebhookConsumer, endpoints: Endpoints, steps: Steps, rival: Rival, clock: FakeClock
) -> None:
    """A consumer can say which of its requests an event follows from. Without a trace, an attempt begins one."""
    await endpoints.make(consumer.url)
    consumer.reactions.append(500)
    trace = {"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00", "tracestate": "a=1"}
    assert (await tenant.api.post("/v1/campaigns", json=tenant.campaign_body(), headers=trace)).status == 201
    await steps.deliver()
    clock.advance(seconds=RETRY_AFTER[0].total_seconds() * 2)
    await steps.deliver()
    assert [message.headers["traceparent"] for message in consumer.messages] == [trace["traceparent"]] * 2
    assert "tracestate" not in consumer.messages[0].headers
    await tenant.make_campaign("Tomorrow")
    await fan_out(steps.ctx)
    await rival.run("UPDATE webhook_events SET traceparent = NULL")
    await steps.deliver()
    assert consumer.messages[-1].headers["traceparent"].startswith("00-")


@pytest.mark.parametrize(
    ("reaction", "expected"),
    [
        (299, ("delivered", 299, None)),
        ("drip", ("delivered", 200, None)),
        ("endless", ("delivered", 200, None)),
        (302, ("pending", 302, "status_not_successful")),
        ("hang", ("pending", None, "timeout")),
        ("reset", ("pending", None, "connection_lost")),
    ],
)
async def test_only_a_2xx_in_time_delivers(
    tenant: Tenant,
    consumer: WebhookConsumer,
    endpoints: Endpoints,
    steps: Steps,
    reaction: Reaction,
    expected: tuple[str, int | None, str | None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(guarded_client, "_BODY_S", 0.2)
    if reaction == "hang":
        monkeypatch.setattr(sending, "TIMEOUT_S", 0.2)
    consumer.otherwise = reaction
    endpoint_id = await endpoints.make(consumer.url)
    await tenant.make_campaign()
    await steps.deliver()
    found = await endpoints.delivery(endpoint_id)
    assert (found.status, found.last_status_code, found.last_error) == expected
    assert (found.attempts, len(consumer.messages)) == (1, 1)


async def test_an_address_inside_is_not_connected_to(
    tenant: Tenant, consumer: WebhookConsumer, endpoints: Endpoints, database_url: Secret, clock: FakeClock
) -> None:
    """An endpoint that was set while this was allowed."""
    endpoint_id = await endpoints.make(consumer.url)
    await tenant.make_campaign()
    async with make_worker(database_url, clock, WEBHOOK_ALLOW_LOOPBACK="false") as ctx:
        await Steps(ctx).deliver()
    found = await endpoints.delivery(endpoint_id)
    assert (found.status, found.last_error, consumer.messages) == ("pending", "url_refused", [])


async def test_a_failed_attempt_is_repeated_after_the_pauses_of_the_contract_and_then_fails(
    tenant: Tenant, consumer: WebhookConsumer, endpoints: Endpoints, steps: Steps, clock: FakeClock
) -> None:
    """The message is the same each time; only its time and its signature are those of the attempt."""
    clock.freeze()
    consumer.otherwise = 503
    endpoint_id = await endpoints.make(consumer.url)
    await tenant.make_campaign()
    await steps.deliver()
    for number, pause in enumerate(RETRY_AFTER, 1):
        found = await endpoints.delivery(endpoint_id)
        actual = found.next_attempt_at - clock.now()
        assert (found.status, found.attempts, len(consumer.messages)) == ("pending", number, number)
        assert pause * 0.9 <= actual <= pause * 1.1
        clock.advance(seconds=actual.total_seconds(), milliseconds=-1)
        await steps.deliver()
        assert len(consumer.messages) == number, "too early"
        clock.advance(milliseconds=1)
        await steps.deliver()
    assert await endpoints.delivery(endpoint_id) == Delivered("failed", 8, 503, "status_not_successful", None)
    assert len({(message.id, message.body) for message in consumer.messages}) == 1
    assert len({message.headers["webhook-timestamp"] for message in consumer.messages}) == 8
    assert all(message.signed_by(SECRET) for message in consumer.messages)


async def test_a_secret_that_is_rolled_between_two_attempts_signs_the_second(
    tenant: Tenant, consumer: WebhookConsumer, endpoints: Endpoints, steps: Steps, clock: FakeClock
) -> None:
    now = clock.freeze()
    consumer.otherwise = 500
    endpoint_id = await endpoints.make(consumer.url)
    await tenant.make_campaign()
    await steps.deliver()
    await endpoints.roll(endpoint_id, until=now + timedelta(hours=1))
    clock.advance(seconds=6)
    await steps.deliver()
    clock.advance(hours=1)
    await steps.deliver()
    signed_by = [[message.signed_by(secret) for secret in (SECRET, NEXT_SECRET)] for message in consumer.messages]
    assert signed_by == [[True, False], [True, True], [False, True]]
    assert consumer.messages[1].headers["webhook-signature"].count("v1,") == 2


async def test_an_endpoint_that_hangs_holds_up_no_other_and_has_few_connections(
    tenant: Tenant, endpoints: Endpoints, steps: Steps
) -> None:
    async with running_consumer() as hanging, running_consumer() as other:
        hanging.otherwise = "held"
        hanging_id, other_id = await endpoints.make(hanging.url), await endpoints.make(other.url)
        for number in range(20):
            await tenant.make_campaign(f"Evening {number}")
        await steps.begin()
        while len(other.messages) < 20:
            await other.until_arrived(len(other.messages) + 1)
            await steps.dispatcher.dispatch_once()
        assert (len(hanging.messages), hanging.under_way) == (OF_ENDPOINT_MAX, OF_ENDPOINT_MAX)
        hanging.release.set()
        hanging.otherwise = 204
        await steps.dispatcher.finish_attempts()
        await steps.deliver()
        await steps.deliver()
        assert hanging.under_way_max == OF_ENDPOINT_MAX
        for endpoint_id in (hanging_id, other_id):
            assert {found.status for found in await endpoints.deliveries(endpoint_id)} == {"delivered"}


async def test_what_is_being_attempted_is_replayed_only_afterwards(
    tenant: Tenant, consumer: WebhookConsumer, endpoints: Endpoints, steps: Steps
) -> None:
    endpoint_id = await endpoints.make(consumer.url)
    consumer.otherwise = "held"
    await tenant.make_campaign()
    await steps.begin()
    await consumer.until_arrived(1)
    assert (await replay(tenant, {"id": endpoint_id}, **ALWAYS)).json == {"replayed_count": 0}
    consumer.release.set()
    await steps.dispatcher.finish_attempts()
    assert (await replay(tenant, {"id": endpoint_id}, **ALWAYS)).json == {"replayed_count": 1}
    await steps.deliver()
    first, second = consumer.messages
    assert (first.id, first.body) == (second.id, second.body)
    assert [found.status for found in await endpoints.deliveries(endpoint_id)] == ["delivered"] * 2


async def test_two_workers_share_the_deliveries(
    tenant: Tenant,
    consumer: WebhookConsumer,
    endpoints: Endpoints,
    steps: Steps,
    database_url: Secret,
    clock: FakeClock,
) -> None:
    endpoint_id = await endpoints.make(consumer.url)
    for number in range(12):
        await tenant.make_campaign(f"Evening {number}")
    async with make_worker(database_url, clock) as beside:
        both = [steps, Steps(beside)]
        await steps.begin()
        for _ in range(3):
            await asyncio.gather(*(each.deliver() for each in both))
    assert len(consumer.messages) == len({message.id for message in consumer.messages}) == 12
    assert {found.attempts for found in await endpoints.deliveries(endpoint_id)} == {1}


async def test_what_a_killed_worker_had_claimed_is_attempted_after_its_lease(
    tenant: Tenant,
    consumer: WebhookConsumer,
    endpoints: Endpoints,
    steps: Steps,
    database_url: Secret,
    clock: FakeClock,
) -> None:
    clock.freeze()
    consumer.reactions.append("hang")
    endpoint_id = await endpoints.make(consumer.url)
    await tenant.make_campaign()
    await steps.begin()
    await consumer.until_arrived(1)
    async with make_worker(database_url, clock) as beside:
        clock.advance(seconds=LEASE.total_seconds(), milliseconds=-1)
        await Steps(beside).deliver()
        assert len(consumer.messages) == 1
        clock.advance(milliseconds=1)
        await Steps(beside).deliver()
    first, second = consumer.messages
    assert (first.id, first.body) == (second.id, second.body)
    assert await endpoints.delivery(endpoint_id) == Delivered("delivered", 1, 204, None, None)
    steps.dispatcher.stop()


async def test_a_late_failure_does_not_undo_the_success_of_another_worker(
    tenant: Tenant,
    consumer: WebhookConsumer,
    endpoints: Endpoints,
    steps: Steps,
    database_url: Secret,
    clock: FakeClock,
) -> None:
    consumer.reactions.append("hang")
    endpoint_id = await endpoints.make(consumer.url)
    await tenant.make_campaign()
    await steps.begin()
    await consumer.until_arrived(1)
    clock.advance(seconds=LEASE.total_seconds())
    async with make_worker(database_url, clock) as beside:
        await Steps(beside).deliver()
    assert (await endpoints.delivery(endpoint_id)).status == "delivered"


async def test_outcomes_that_a_lost_database_did_not_take_are_stored_later(
    tenant: Tenant, consumer: WebhookConsumer, endpoints: Endpoints, steps: Steps, rival: Rival
) -> None:
    endpoint_id = await endpoints.make(consumer.url)
    await tenant.make_campaign()
    await steps.begin()
    await consumer.until_arrived(1)
    async with rival.holding("SELECT 1 FROM webhook_deliveries FOR UPDATE"):
        storing = await rival.while_waiting(steps.dispatcher.finish_attempts())
        await rival.kill_waiting_sessions()
        with pytest.raises(DatabaseUnavailable):
            await storing
    assert (await endpoints.delivery(endpoint_id)).status == "pending"
    await steps.dispatcher.dispatch_once()
    assert await endpoints.delivery(endpoint_id) == Delivered("delivered", 1, 204, None, None)
    assert len(consumer.messages) == 1


async def test_a_stopping_worker_gives_back_what_it_has_not_delivered(
    tenant: Tenant, consumer: WebhookConsumer, endpoints: Endpoints, ctx: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Attempts under way have a moment to end; those that hang are cut off, and may be repeated at once."""
    monkeypatch.setattr(dispatching, "STOP_S", 0.2)
    consumer.otherwise = "hang"
    endpoint_id = await endpoints.make(consumer.url)
    for number in range(OF_ENDPOINT_MAX + 2):
        await tenant.make_campaign(f"Evening {number}")
    async with dispatching.dispatching(ctx, fan_out):
        await consumer.until_arrived(OF_ENDPOINT_MAX)
    deliveries = await endpoints.deliveries(endpoint_id)
    assert len(deliveries) == OF_ENDPOINT_MAX + 2
    assert {(found.status, found.attempts) for found in deliveries} == {("pending", 0)}
    assert all(found.next_attempt_at <= ctx.clock.now() for found in deliveries)


@pytest.fixture
def seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    """The dispatcher looks only when it is notified, or when the next attempt is due, and never just in case."""
    monkeypatch.setattr(dispatching, "_LOOK_EVERY_S", 3600)
    monkeypatch.setattr(dispatching, "_WATCH_EVERY_S", 3600)


@pytest.mark.usefixtures("seldom")
async def test_a_running_worker_delivers_an_act_and_a_replay_that_it_is_notified_of(
    tenant: Tenant, consumer: WebhookConsumer, endpoints: Endpoints, ctx: Context, rival: Rival
) -> None:
    endpoint_id = await endpoints.make(consumer.url)
    async with dispatching.dispatching(ctx, fan_out):
        # The first may have been there before the worker listened. The others come while it waits.
        for count in (1, 2, 3):
            await tenant.make_campaign(f"Evening {count}")
            await consumer.until_arrived(count)
            await rival.until_rows("SELECT 1 FROM webhook_deliveries WHERE status = 'pending'")
        assert (await replay(tenant, {"id": endpoint_id}, **ALWAYS)).json["replayed_count"] == 3
        await consumer.until_arrived(6)
    assert consumer.types == ["campaign.created"] * 6
    assert {found.status for found in await endpoints.deliveries(endpoint_id)} == {"delivered"}


@pytest.mark.usefixtures("seldom")
async def test_a_running_worker_that_is_notified_of_nothing_looks_by_itself(
    tenant: Tenant, consumer: WebhookConsumer, endpoints: Endpoints, ctx: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as while the connection on which it listens is lost."""

    async def hear_nothing(_: Listener) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(Listener, "keep_listening", hear_nothing)
    await endpoints.make(consumer.url)
    async with dispatching.dispatching(ctx, fan_out):
        for count in (1, 2):
            await tenant.make_campaign(f"Evening {count}")
            await consumer.until_arrived(count)


@pytest.mark.usefixtures("seldom")
async def test_a_running_worker_attempts_again_when_it_is_due_without_a_notification(
    tenant: Tenant,
    consumer: WebhookConsumer,
    endpoints: Endpoints,
    ctx: Context,
    steps: Steps,
    rival: Rival,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of two endpoints that do not fit into one look, the first is due first."""
    monkeypatch.setattr(dispatching, "_ENDPOINTS_MAX", 1)
    first, second = await endpoints.make(consumer.url), await endpoints.make(consumer.url)
    consumer.reactions += [500, 500]
    await tenant.make_campaign()
    await steps.deliver()
    due_at = ctx.clock.now() + timedelta(seconds=2)
    for endpoint_id, moment in ((first, due_at), (second, due_at + timedelta(hours=1))):
        # After five attempts an hour's pause is no longer than it may be.
        await rival.run(
            "UPDATE webhook_deliveries SET attempts = 5, next_attempt_at = %s WHERE endpoint_id = %s",
            moment,
            endpoint_id,
        )
    async with dispatching.dispatching(ctx, fan_out):
        await consumer.until_arrived(3)
        assert ctx.clock.now() >= due_at
    assert [(await endpoints.delivery(each)).status for each in (first, second)] == ["delivered", "pending"]


async def test_a_running_worker_delivers_an_act_by_itself(
    tenant: Tenant, consumer: WebhookConsumer, endpoints: Endpoints, ctx: Context
) -> None:
    endpoint_id = await endpoints.make(consumer.url)
    async with dispatching.dispatching(ctx, fan_out):
        await tenant.make_campaign()
        await consumer.until_arrived(1)
    assert consumer.types == ["campaign.created"]
    assert (await endpoints.delivery(endpoint_id)).status == "delivered"
