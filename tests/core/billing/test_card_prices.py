"""The jobs that ask the card provider for the prices of its offers."""

import contextlib
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from typing import Any, TypeAlias

import pytest
from procrastinate import App
from procrastinate.testing import InMemoryConnector
from support.catalog import CARD_OFFER, LOCAL_OFFER, list_offers, put_offer, put_provider, sell
from support.core_client import Api
from support.core_settings import jobs_settings
from support.fake_clock import FakeClock
from support.misbehaving_server import Behaviour, MisbehavingServer, answer, misbehaving_server
from support.rival import Rival
from support.secret_leaks import remember_secret

from soundmark.core.context import Context
from soundmark.core.features.billing.catalog import jobs
from soundmark.core.worker import make_job_context
from soundmark.kit.crypto.secret import Secret

SECRET_KEY = "sk_test_" + "k" * 24
PRICE = {
    "id": "price_1PlantedMarker",
    "object": "price",
    "active": True,
    "billing_scheme": "per_unit",
    "created": 1763632800,
    "currency": "eur",
    "livemode": False,
    "lookup_key": None,
    "metadata": {},
    "nickname": None,
    "product": "prod_1",
    "recurring": {
        "interval": "month",
        "interval_count": 1,
        "meter": None,
        "trial_period_days": None,
        "usage_type": "licensed",
    },
    "tax_behavior": "inclusive",
    "tiers_mode": None,
    "transform_quantity": None,
    "type": "recurring",
    "unit_amount": 4900,
    "unit_amount_decimal": "4900",
}
KNOWN = {"currency": "EUR", "amount_minor": 4900, "interval": "month"}
MISSING = {"error": {"type": "invalid_request_error", "code": "resource_missing", "message": "No such price"}}

Worker: TypeAlias = Callable[[Behaviour], AbstractAsyncContextManager[tuple[Context, MisbehavingServer]]]


def say(price: dict[str, Any], status: str = "200 OK") -> Behaviour:
    return answer(json.dumps(price).encode(), status=status)


@pytest.fixture
def worker(database_url: Secret, clock: FakeClock) -> Worker:
    """A function that runs a worker beside a card provider that does one thing."""
    remember_secret(SECRET_KEY)

    @contextlib.asynccontextmanager
    async def run(behave: Behaviour) -> AsyncIterator[tuple[Context, MisbehavingServer]]:
        async with misbehaving_server(behave) as provider:
            settings = jobs_settings(database_url, CARD_API_URL=provider.url, CARD_SECRET_KEY=SECRET_KEY)
            ctx = make_job_context(settings, clock=clock)
            await ctx.db.open()
            try:
                yield ctx, provider
            finally:
                await ctx.db.close()

    return run


async def shown(api: Api, offer_id: str = "offer_1") -> dict[str, Any]:
    """Return what customers see of an offer's price."""
    offer = next(offer for offer in await list_offers(api) if offer["id"] == offer_id)
    return {name: offer[name] for name in KNOWN}


async def deferred(rival: Rival) -> list[Any]:
    rows = await rival.rows("SELECT lock, args FROM procrastinate_jobs WHERE task_name = 'read_card_price'")
    await rival.run("DELETE FROM procrastinate_jobs WHERE task_name = 'read_card_price'")
    return rows


def asked(provider: MisbehavingServer) -> list[str]:
    """Return the paths that the provider was asked for, in order and each once."""
    return list(dict.fromkeys(request.split(b" ", 2)[1].partition(b"?")[0].decode() for request in provider.requests))


async def test_a_put_of_a_card_offer_defers_the_job_that_reads_its_price(api: Api, rival: Rival) -> None:
    """In its transaction. The job knows only the offer's id."""
    await deferred(rival)
    await put_offer(api, "offer_1", CARD_OFFER)
    assert await deferred(rival) == [("read_card_price:offer_1", {"offer_id": "offer_1"})]
    await put_offer(api, "offer_1", LOCAL_OFFER)
    await put_offer(api, "offer_2", LOCAL_OFFER)
    assert await deferred(rival) == []


async def test_the_price_is_shown_as_the_provider_says(api: Api, rival: Rival, worker: Worker) -> None:
    await sell(api, "offer_1", CARD_OFFER)
    ((before,),) = await rival.rows("SELECT updated_at FROM offers")
    async with worker(say(PRICE)) as (ctx, provider):
        for _ in range(2):
            assert await jobs.read_price(ctx, offer_id="offer_1")
            assert await shown(api) == KNOWN
    assert asked(provider) == ["/v1/prices/price_1PlantedMarker"]
    assert await rival.rows("SELECT updated_at FROM offers") == [(before,)], "the operator changed nothing"


@pytest.mark.parametrize(
    ("changes", "known"),
    [
        ({"currency": "tnd", "unit_amount": 0}, {"currency": "TND", "amount_minor": 0, "interval": "month"}),
        ({"recurring": {**PRICE["recurring"], "interval": "year"}}, {**KNOWN, "interval": "year"}),  # type: ignore[dict-item]  # a part of an object of the provider
        ({"recurring": {**PRICE["recurring"], "interval": "week"}}, {**KNOWN, "interval": None}),  # type: ignore[dict-item]  # as above
        ({"recurring": None, "type": "one_time"}, {**KNOWN, "interval": None}),
        (
            {"unit_amount": None, "unit_amount_decimal": None, "billing_scheme": "tiered"},
            {**KNOWN, "amount_minor": None},
        ),
    ],
    ids=["another currency", "a year", "a week", "once", "tiers"],
)
async def test_what_a_price_lacks_is_null(api: Api, worker: Worker, changes: dict[str, Any], known: Any) -> None:
    await sell(api, "offer_1", CARD_OFFER)
    async with worker(say({**PRICE, **changes})) as (ctx, _):
        assert await jobs.read_price(ctx, offer_id="offer_1")
    assert await shown(api) == known


@pytest.mark.parametrize(
    "behave",
    [
        say(MISSING, "404 Not Found"),
        say({"error": {"type": "api_error", "message": "price_1PlantedMarker"}}, "500 Internal Server Error"),
        say({"error": {"type": "invalid_request_error"}}, "401 Unauthorized"),
        answer(b"<html>", media_type="text/html"),
        answer(b'{"id": "price_'),
        say({"object": "price"}),
    ],
    ids=["unknown", "500", "401", "html", "half", "no price"],
)
async def test_a_failure_leaves_what_is_known(api: Api, worker: Worker, behave: Behaviour, capsys: Any) -> None:
    """And its log names the offer, never the price or the key."""
    await sell(api, "offer_1", CARD_OFFER)
    async with worker(say(PRICE)) as (ctx, _):
        await jobs.read_price(ctx, offer_id="offer_1")
    capsys.readouterr()
    async with worker(behave) as (ctx, _):
        await jobs.read_price(ctx, offer_id="offer_1")
    assert await shown(api) == KNOWN
    log = capsys.readouterr().out
    assert "card_price_not_read" in log
    assert "offer_id=offer_1" in log
    assert "PlantedMarker" not in log


async def test_a_provider_that_is_gone_or_not_configured_leaves_what_is_known(
    api: Api, database_url: Secret, worker: Worker, clock: FakeClock
) -> None:
    await sell(api, "offer_1", CARD_OFFER)
    async with worker(say(PRICE)) as (ctx, _):
        await jobs.read_price(ctx, offer_id="offer_1")
    gone = {"CARD_API_URL": "http://127.0.0.1:9"}
    for given in (gone, {**gone, "CARD_SECRET_KEY": SECRET_KEY}):
        ctx = make_job_context(jobs_settings(database_url, **given), clock=clock)
        await ctx.db.open()
        try:
            assert not await jobs.read_price(ctx, offer_id="offer_1")
        finally:
            await ctx.db.close()
    assert await shown(api) == KNOWN


async def test_a_price_that_was_replaced_while_it_was_read_is_not_stored(api: Api, worker: Worker) -> None:
    await sell(api, "offer_1", CARD_OFFER)

    async def replace_then_answer(*streams: Any) -> None:
        await put_offer(api, "offer_1", {**CARD_OFFER, "price_reference": "price_2"})
        await say(PRICE)(*streams)

    async with worker(replace_then_answer) as (ctx, _):
        assert await jobs.read_price(ctx, offer_id="offer_1")
    assert await shown(api) == dict.fromkeys(KNOWN)


async def test_a_read_that_began_before_the_last_one_is_not_stored(
    api: Api, rival: Rival, worker: Worker, clock: FakeClock
) -> None:
    await sell(api, "offer_1", CARD_OFFER)
    now = clock.freeze()
    later = now + timedelta(seconds=1)
    await rival.run(
        "UPDATE offers SET currency = 'EUR', amount_minor = 4900, price_interval = 'month', price_read_at = %s", later
    )
    async with worker(say({**PRICE, "unit_amount": 1})) as (ctx, _):
        await jobs.read_price(ctx, offer_id="offer_1")
        assert await shown(api) == KNOWN
        clock.advance(seconds=1)
        await jobs.read_price(ctx, offer_id="offer_1")
        assert await shown(api) == {**KNOWN, "amount_minor": 1}


async def test_nothing_is_asked_about_another_offer(api: Api, worker: Worker) -> None:
    await sell(api, "offer_1", LOCAL_OFFER)
    async with worker(say(PRICE)) as (ctx, provider):
        assert await jobs.read_price(ctx, offer_id="offer_1")
        assert await jobs.read_price(ctx, offer_id="offer_unknown")
        assert await jobs.read_prices(ctx) == 0
    assert provider.requests == []


async def test_each_price_is_read_again_after_a_day(api: Api, worker: Worker, clock: FakeClock) -> None:
    """Of active offers, those that were never read first."""
    clock.freeze()
    await sell(api, "offer_1", CARD_OFFER)
    async with worker(say(PRICE)) as (ctx, provider):
        assert await jobs.read_prices(ctx) == 1
        assert await jobs.read_prices(ctx) == 0
        clock.advance(hours=23)
        assert await jobs.read_prices(ctx) == 0
        clock.advance(hours=1)
        await put_offer(api, "offer_2", {**CARD_OFFER, "price_reference": "price_2"})
        await put_offer(api, "offer_3", {**CARD_OFFER, "price_reference": "price_3", "active": False})
        provider.requests.clear()
        assert await jobs.read_prices(ctx) == 2
        assert asked(provider) == ["/v1/prices/price_2", "/v1/prices/price_1PlantedMarker"]
        assert await jobs.read_prices(ctx) == 0
    assert await shown(api, "offer_2") == KNOWN


async def test_the_first_failure_ends_a_reading_of_many(api: Api, worker: Worker) -> None:
    """Each may take the whole deadline. What is not read stays due. An unknown price is no failure."""
    await put_provider(api, "card")
    for number in range(3):
        await put_offer(api, f"offer_{number}", {**CARD_OFFER, "price_reference": f"price_{number}"})
    async with worker(say({"error": {"type": "invalid_request_error"}}, "401 Unauthorized")) as (ctx, provider):
        assert await jobs.read_prices(ctx) == 0
    assert asked(provider) == ["/v1/prices/price_0"]
    async with worker(say(MISSING, "404 Not Found")) as (ctx, provider):
        assert await jobs.read_prices(ctx) == 3
    async with worker(say(PRICE)) as (ctx, provider):
        assert await jobs.read_prices(ctx) == 3


async def test_the_worker_knows_the_jobs(api: Api, worker: Worker) -> None:
    await sell(api, "offer_1", CARD_OFFER)
    app = App(connector=InMemoryConnector())
    async with worker(say(PRICE)) as (ctx, _):
        jobs.add_tasks(app, ctx)
        await app.tasks["read_card_price"](offer_id="offer_1")
        assert await shown(api) == KNOWN
        await app.tasks["read_card_prices"](timestamp=0)
    (hourly,) = app.periodic_registry.periodic_tasks.values()
    assert (hourly.task.name, hourly.cron) == ("read_card_prices", "29 * * * *")
