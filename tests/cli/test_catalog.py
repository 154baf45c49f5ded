"""`soundmark platform catalog`: the catalogue as the API answers it, and as tables."""

import asyncio
import json

import pytest
from support.api.core_client import Api
from support.billing.catalog import ADMIN, CARD_OFFER, CODES_PLAN, LOCAL_OFFER, put_offer, put_plan
from support.database.rival import Rival

from soundmark.kit.crypto.secret import Secret

from .conftest import Done, run


@pytest.fixture
async def settings(api: Api, rival: Rival, database_url: Secret) -> dict[str, str]:
    """A catalogue with something in each list. It needs the database alone, and no master key."""
    organization_id = await api.make_organization("Radio \x9b31mNordlicht")
    await put_plan(api, "plan_1", CODES_PLAN)
    await put_offer(api, "offer_card", CARD_OFFER)
    await put_offer(api, "offer_local", LOCAL_OFFER)
    await rival.run(
        "INSERT INTO subscriptions (organization_id, id, plan_id, product, audience_mode, provider, status,"
        " cancel_at_period_end, contract_reference, created_at, updated_at) VALUES (%s, 'bsu_1',"
        " 'plan_audience_contract', 'audience', 'contract', 'contract', 'active', false, 'C-1', now(), now())",
        organization_id,
    )
    await rival.run("INSERT INTO accounting_customers VALUES (%s, 17, now())", organization_id)
    return {"CORE_DATABASE_URL": database_url.reveal()}


async def print_catalog(settings: dict[str, str], *more: str) -> Done:
    return await asyncio.to_thread(run, "platform", "catalog", *more, settings=settings)


async def test_as_json_it_is_what_the_api_answers(api: Api, settings: dict[str, str]) -> None:
    done = await print_catalog(settings, "--json")
    assert (done.status, done.err, done.out.count("\n")) == (0, "", 1)
    answer = (await api.get(f"{ADMIN}/catalog")).json
    assert json.loads(done.out) == answer
    assert all(answer.values()), "each list holds something"


async def test_people_get_a_table_of_each_list(settings: dict[str, str]) -> None:
    done = await print_catalog(settings)
    assert (done.status, done.err) == (0, "")
    titles = [line for line in done.out.splitlines() if line[:1].isalpha()]
    assert titles == [
        *("Payment providers", "Plans", "Offers", "Contracts for measuring", "Customers of the accounting system")
    ]
    for shown in (
        "plan_codes_starter",
        "Codes Studio",
        "5000",
        "149000 millimes",
        "price_1PlantedMarker",
        "(unknown)",
        "C-1",
        "17",
    ):
        assert shown in done.out
    assert "\x9b" not in done.out, "no name controls the terminal"


async def test_an_empty_list_is_said_to_be_empty(api: Api, database_url: Secret) -> None:
    assert api is not None, "the database is migrated and empty"
    done = await print_catalog({"CORE_DATABASE_URL": database_url.reveal()})
    assert done.out.endswith("Contracts for measuring\nnone\nCustomers of the accounting system\nnone\n")


async def test_without_its_database_it_is_one_line() -> None:
    done = await print_catalog({"CORE_DATABASE_URL": "postgresql://core@127.0.0.1:9/core"})
    assert done.refusal == "Core's database does not answer"
