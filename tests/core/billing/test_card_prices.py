"""The job that asks the card provider for the prices of its offers."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from procrastinate import App
from procrastinate.testing import InMemoryConnector
from support.api.core_client import Api
from support.billing.card_purchase import CARD_SECRET, list_paths, put_object
from support.billing.catalog import CARD_OFFER, LOCAL_OFFER, add_price, list_offers, put_offer, put_provider, sell
from support.database.rival import Rival
from support.outside.running_sandbox import RunningSandbox
from support.processes.fake_clock import FakeClock
from support.processes.killable import Killable
from support.processes.running_apps import make_worker

from soundmark.core.context import Context
from soundmark.core.features.billing.catalog import jobs
from soundmark.core.features.billing.catalog.jobs import read_prices
from soundmark.kit.crypto.secret import Secret

FACTS = "SELECT price_status, currency, amount_minor, price_interval FROM offers ORDER BY id"
KNOWN, NOTHING = ("known", "EUR", 4900, "month"), ("unknown", None, None, None)
READING = (
    "INSERT INTO procrastinate_jobs (queue_name, task_name, args)"
    " VALUES ('default', 'read_card_prices', '{\"timestamp\": 0}')"
)


@pytest.fixture
async def work(database_url: Secret, card: RunningSandbox, clock: FakeClock) -> AsyncIterator[Context]:
    """The context of Core's worker."""
    async with make_worker(database_url, clock, CARD_API_URL=card.settings()["CARD_API_URL"]) as ctx:
        yield ctx


@pytest.fixture
async def unknown(api: Api, card: RunningSandbox) -> None:
    """An offer that was put on sale while the provider was away."""
    await card.misbehave("card", "refused")
    await put_provider(api, "card")
    assert (await put_offer(api, "offer_1", CARD_OFFER)).json["price_status"] == "unknown"
    await card.control("/calls/clear")
    await add_price(card)


async def asked(card: RunningSandbox) -> list[str]:
    """Return the prices that the provider was asked for, in order."""
    paths = [path.removeprefix("/v1/prices/") for path in await list_paths(card)]
    await card.control("/calls/clear")
    return paths


@pytest.mark.usefixtures("unknown")
async def test_an_unknown_price_becomes_known_and_is_for_sale(
    api: Api, rival: Rival, work: Context, card: RunningSandbox
) -> None:
    ((before,),) = await rival.rows("SELECT updated_at FROM offers")

    assert (await read_prices(work), await asked(card)) == (1, ["price_1PlantedMarker"])

    assert await rival.rows(FACTS) == [KNOWN]
    assert [offer["id"] for offer in await list_offers(api)] == ["offer_1"]
    assert await rival.rows("SELECT updated_at FROM offers") == [(before,)], "the operator changed nothing"
    assert (await read_prices(work), await asked(card)) == (0, [])


@pytest.mark.parametrize("changes", [None, {"active": False}, {"recurring": None}], ids=["unknown", "inactive", "once"])
async def test_a_price_that_is_gone_is_missing_until_it_is_there_again(
    api: Api, rival: Rival, work: Context, card: RunningSandbox, clock: FakeClock, changes: dict[str, Any] | None
) -> None:
    clock.freeze()
    await add_price(card)
    await sell(api, "offer_1", CARD_OFFER)
    await put_object(card, "/v1/prices/price_1PlantedMarker", {})
    if changes is not None:
        await add_price(card, **changes)
    assert await read_prices(work) == 0
    clock.advance(days=1, seconds=1)

    assert await read_prices(work) == 1
    assert await rival.rows(FACTS) == [("missing", *KNOWN[1:])]
    assert await list_offers(api) == []

    clock.advance(days=1, seconds=1)
    await add_price(card, unit_amount=5900)
    assert await read_prices(work) == 1
    assert [offer["amount_minor"] for offer in await list_offers(api)] == [5900]


async def test_a_failure_leaves_what_is_known(
    api: Api, rival: Rival, work: Context, card: RunningSandbox, clock: FakeClock, capsys: Any
) -> None:
    """It is due again the next time. The log names the offer, never the price or the key."""
    clock.freeze()
    await add_price(card)
    await sell(api, "offer_1", CARD_OFFER)
    clock.advance(days=1, seconds=1)
    await card.misbehave("card", "refused")
    capsys.readouterr()

    assert await read_prices(work) == 0

    assert await rival.rows(FACTS) == [KNOWN]
    log = capsys.readouterr().out
    assert "card_price_not_read" in log
    assert "offer_id=offer_1" in log
    assert "PlantedMarker" not in log
    assert await read_prices(work) == 1


@pytest.mark.usefixtures("unknown")
async def test_without_credentials_nothing_is_asked(rival: Rival, work: Context, card: RunningSandbox) -> None:
    await rival.run("DELETE FROM platform_secrets")
    assert (await read_prices(work), await asked(card)) == (0, [])


@pytest.mark.usefixtures("unknown")
async def test_a_price_that_was_replaced_while_it_was_read_is_not_stored(
    api: Api, rival: Rival, work: Context, card: RunningSandbox
) -> None:
    await card.hold("card")
    await card.misbehave("card", "refused")
    reading = asyncio.create_task(read_prices(work))
    await card.until_held("card")
    await put_offer(api, "offer_1", {**CARD_OFFER, "price_reference": "price_2"})
    await card.release("card")
    await reading
    assert await rival.rows(FACTS) == [NOTHING]


@pytest.mark.usefixtures("unknown")
async def test_a_question_that_began_before_that_of_a_change_is_not_stored(
    api: Api, rival: Rival, work: Context, card: RunningSandbox, clock: FakeClock
) -> None:
    """The price went while the job asked, and an operator has retired the offer by then."""
    clock.freeze()
    await card.hold("card")
    reading = asyncio.create_task(read_prices(work))
    await card.until_held("card")
    clock.advance(seconds=1)
    await put_object(card, "/v1/prices/price_1PlantedMarker", {})
    retired = await put_offer(api, "offer_1", {**CARD_OFFER, "active": False})
    await card.release("card")
    await reading
    assert retired.json["price_status"] == "missing"
    assert await rival.rows(FACTS) == [("missing", None, None, None)]


@pytest.mark.usefixtures("unknown")
async def test_of_two_workers_both_may_ask(rival: Rival, work: Context) -> None:
    """The second waits to store, and stores the same."""
    async with rival.holding("SELECT FROM offers FOR UPDATE"):
        both = [asyncio.create_task(read_prices(work)) for _ in range(2)]
        await rival.until_someone_waits(2)
    assert [await each for each in both] == [1, 1]
    assert await rival.rows(FACTS) == [KNOWN]


async def test_each_price_of_an_active_card_offer_is_read_again_after_a_day(
    api: Api, work: Context, card: RunningSandbox, clock: FakeClock
) -> None:
    """Those that were never read come first."""
    clock.freeze()
    await add_price(card)
    await sell(api, "offer_1", CARD_OFFER)
    clock.advance(hours=24)
    assert await read_prices(work) == 0
    clock.advance(seconds=1)
    for number, body in enumerate((CARD_OFFER, {**CARD_OFFER, "active": False}), start=2):
        await card.misbehave("card", "refused")
        await put_offer(api, f"offer_{number}", {**body, "price_reference": f"price_{number}"})
        await add_price(card, f"price_{number}")
    await put_offer(api, "offer_4", LOCAL_OFFER)
    await card.control("/calls/clear")

    assert (await read_prices(work), await asked(card)) == (2, ["price_2", "price_1PlantedMarker"])


async def test_three_failures_in_a_row_end_a_reading_of_many(api: Api, work: Context, card: RunningSandbox) -> None:
    """Each may take the whole deadline. What is not read stays due, and one that always fails holds up no other."""
    for number in range(5):
        await card.misbehave("card", "refused")
        await put_offer(api, f"offer_{number}", {**CARD_OFFER, "price_reference": f"price_{number}"})
        await add_price(card, f"price_{number}")
    await card.control("/calls/clear")
    await card.misbehave("card", "refused", times=3)
    assert (await read_prices(work), await asked(card)) == (0, ["price_0", "price_1", "price_2"])
    await card.misbehave("card", "refused", times=2)
    assert (await read_prices(work), len(await asked(card))) == (3, 5)


@pytest.mark.usefixtures("unknown")
async def test_the_worker_knows_the_job(rival: Rival, work: Context) -> None:
    app = App(connector=InMemoryConnector())
    jobs.add_tasks(app, work)
    await app.tasks["read_card_prices"](timestamp=0)
    assert await rival.rows(FACTS) == [KNOWN]
    (periodic,) = app.periodic_registry.periodic_tasks.values()
    assert (periodic.task.name, periodic.cron) == ("read_card_prices", "* * * * *")


async def test_a_core_that_dies_between_the_question_and_the_commit_has_changed_nothing(
    api: Api, rival: Rival, card: RunningSandbox, killable: Killable
) -> None:
    await add_price(card)
    await card.hold("card")
    async with killable.core(card_secret_key=CARD_SECRET) as core:
        core.lose("PUT", "/v1/billing/admin/offers/offer_1", json=CARD_OFFER)
        await card.until_held("card")
        core.kill()
    assert await rival.rows(FACTS) == []

    assert (await put_offer(api, "offer_1", CARD_OFFER)).json["price_status"] == "known"


@pytest.mark.usefixtures("unknown")
async def test_a_worker_that_dies_between_the_question_and_the_commit_leaves_the_price_due(
    rival: Rival, card: RunningSandbox, killable: Killable
) -> None:
    await card.hold("card")
    async with killable.worker() as worker:
        await rival.run(READING)
        await card.until_held("card")
        async with worker.dying_while(rival, "SELECT FROM offers FOR UPDATE"):
            await card.release("card")
    assert await rival.rows(FACTS) == [NOTHING]
    await rival.run("DELETE FROM procrastinate_jobs")

    async with killable.worker():
        await rival.run(READING)
        await rival.until_rows(FACTS, KNOWN)
