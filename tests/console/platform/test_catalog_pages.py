"""The catalogue of the platform."""

from datetime import timedelta
from typing import Any

import pytest
from support.api.core_client import Api
from support.billing.catalog import (
    AUDIENCE_PLAN,
    CARD_OFFER,
    CODES_PLAN,
    LOCAL_OFFER,
    add_price,
    put_offer,
    put_plan,
    put_provider,
    read_catalog,
    sell,
)
from support.console.client import ConsoleClient, PageAnswer
from support.outside.running_sandbox import RunningSandbox
from support.processes.fake_clock import FakeClock
from support.tenancy.tenant import Tenant

from soundmark.kit.text.timestamps import format_timestamp

CATALOG = "/platform/catalog"
HOSTILE = "<script>alert(1)</script> \"'&"
CONTRACT_PLAN = "plan_audience_contract"
PLAN = {"product": "codes", "plan_id": "plan_codes_studio", "name": "Studio", "monthly_code_quota": "5000"}
OFFER = {"provider": "local", "offer_id": "offer_prepaid", "plan_id": "plan_codes_starter", "amount_minor": "149000"}


async def entries(api: Api, kind: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await read_catalog(api))[kind]
    return found


def typed(page: PageAnswer, fields: dict[str, str]) -> dict[str, str]:
    return {name: page.value(name) for name in fields}


async def test_a_provider_is_put_on_sale_and_taken_off(operator: ConsoleClient, api: Api) -> None:
    page = await operator.get(CATALOG)
    assert page.text.count("offers not for sale") == 2

    on = await operator.follow(await operator.submit(f"{CATALOG}/providers/card", {"enabled": "true"}))
    assert "offers are for sale." in on.text
    enabled = {each["provider"]: each["enabled"] for each in await entries(api, "providers")}
    assert enabled == {"card": True, "local": False}

    await operator.submit(f"{CATALOG}/providers/card", {"enabled": "false"})
    assert not any(each["enabled"] for each in await entries(api, "providers"))


async def test_another_provider_does_not_exist(operator: ConsoleClient) -> None:
    page = await operator.submit(f"{CATALOG}/providers/cheque", {"enabled": "true"})

    assert page.trouble == "page_not_found"


@pytest.mark.parametrize(
    ("fields", "quota"),
    [
        (PLAN, ("monthly_code_quota", 5000)),
        (
            {"product": "audience", "plan_id": "plan_plus", "name": "Plus", "monthly_event_quota": "70"},
            ("monthly_event_quota", 70),
        ),
    ],
    ids=["codes", "audience"],
)
async def test_a_plan_is_made_and_changed(
    operator: ConsoleClient, api: Api, fields: dict[str, str], quota: tuple[str, int]
) -> None:
    new = await operator.get(f"{CATALOG}/plan?product={fields['product']}")
    assert new.value("product") == fields["product"]
    assert new.value(quota[0]) == ""

    made = await operator.submit(f"{CATALOG}/plan", {**fields, "active": "true"})
    assert f"{fields['plan_id']} was saved." in (await operator.follow(made)).text

    path = f"{CATALOG}/plan?plan_id={fields['plan_id']}"
    shown = await operator.get(path)
    assert typed(shown, fields) == fields
    await operator.submit(path, {**fields, "name": "Renamed", "active": "false"})
    [plan] = [each for each in await entries(api, "plans") if each["plan_id"] == fields["plan_id"]]
    assert (plan["name"], plan[quota[0]], plan["active"]) == ("Renamed", quota[1], False)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"plan_id": ""}, "plan_id"),
        ({"plan_id": ".."}, "plan_id"),
        ({"plan_id": "studio"}, "plan_id"),
        ({"name": ""}, "name"),
        ({"monthly_code_quota": "many"}, "monthly_code_quota"),
        ({"monthly_code_quota": "-1"}, "monthly_code_quota"),
    ],
)
async def test_a_refused_plan_is_shown_again(
    operator: ConsoleClient, api: Api, changes: dict[str, str], field: str
) -> None:
    fields = {**PLAN, **changes, "active": "false"}

    page = await operator.submit(f"{CATALOG}/plan?product=codes", fields)

    assert (page.status, page.trouble) == (422, "validation_failed")
    assert typed(page, fields) == fields
    assert page.find(f".//input[@id='field-{field}']").get("aria-invalid") == "true"
    assert len(await entries(api, "plans")) == 2


async def test_offers_of_both_providers_are_made_and_changed(operator: ConsoleClient, api: Api) -> None:
    local = {**OFFER, "entitlement_months": "12", "active": "true"}
    card = {
        "provider": "card",
        "offer_id": "offer_monthly",
        "plan_id": "plan_codes_starter",
        "price_reference": "price_1Monthly",
        "active": "true",
    }
    for fields in (local, card):
        new = await operator.get(f"{CATALOG}/offer?provider={fields['provider']}")
        assert "plan_codes_starter" in [each.get("value") for each in new.find_all(".//select[@name='plan_id']/option")]
        saved = await operator.submit(f"{CATALOG}/offer?provider={fields['provider']}", fields)
        assert f"{fields['offer_id']} was saved." in (await operator.follow(saved)).text
        path = f"{CATALOG}/offer?offer_id={fields['offer_id']}"
        assert typed(await operator.get(path), fields) == fields
        await operator.submit(path, {**fields, "active": "false"})

    offers = {each["offer_id"]: each for each in await entries(api, "offers")}
    assert not any(each["active"] for each in offers.values())
    assert (offers["offer_prepaid"]["amount_minor"], offers["offer_prepaid"]["entitlement_months"]) == (149_000, 12)
    assert offers["offer_monthly"]["price_reference"] == "price_1Monthly"
    assert "not confirmed yet, not for sale" in (await operator.get(CATALOG)).text


async def test_a_card_price_has_its_amount_and_period_while_it_is_for_sale(
    operator: ConsoleClient, api: Api, card: RunningSandbox, clock: FakeClock
) -> None:
    """Core tells the amount of what is for sale, and otherwise whether the provider has the price."""
    await add_price(card)
    await sell(api, "offer_card", CARD_OFFER)

    def read_price(page: PageAnswer) -> str:
        cells = ["".join(each.itertext()) for each in page.find_all(".//td")]
        return " ".join(next(each for each in cells if "price_1" in each).split())

    for_sale = await operator.get(CATALOG)
    in_french = await operator.other(language="fr").sign_in_as_operator(clock.now()).get(CATALOG)
    operator.core.refuse("GET /v1/billing/offers", 503, "database_unavailable")
    unavailable = await operator.get(CATALOG)
    operator.core.recover()
    await put_provider(api, "card", enabled=False)
    withdrawn = await operator.get(CATALOG)

    rest = "price_1PlantedMarker · known to the provider"
    assert read_price(for_sale) == f"€49.00 per month{rest}"
    assert read_price(in_french).startswith("49,00 € par mois")
    assert unavailable.status == 200
    assert read_price(unavailable).startswith("This part cannot be shown at the moment.")
    assert read_price(withdrawn) == f"The amount is shown while the offer is for sale.{rest}"


async def test_a_refused_offer_is_shown_again(operator: ConsoleClient, api: Api) -> None:
    fields = {**OFFER, "entitlement_months": "37", "active": "true"}

    page = await operator.submit(f"{CATALOG}/offer?provider=local", fields)

    assert (page.status, page.trouble) == (422, "validation_failed")
    assert typed(page, fields) == fields
    assert await entries(api, "offers") == []


async def test_a_contract_is_granted_and_cancelled(
    operator: ConsoleClient, tenant: Tenant, api: Api, clock: FakeClock
) -> None:
    ends = (clock.now() + timedelta(days=30)).strftime("%Y-%m-%dT%H:%M")
    fields = {
        "organization_id": tenant.organization_id,
        "contract_reference": "C/1 & co",
        "plan_id": CONTRACT_PLAN,
        "status": "active",
        "period_end": ends,
    }

    page = await operator.follow(await operator.submit(f"{CATALOG}/contract", fields))

    assert "C/1 & co was saved." in page.text
    link = next(each for each in page.find_all(".//tbody//td/a") if "contract?" in str(each.get("href")))
    path = str(link.get("href"))
    assert typed(await operator.get(path), fields) == fields
    await operator.submit(path, {**fields, "status": "cancelled"})
    [contract] = await entries(api, "audience_contracts")
    assert (contract["status"], contract["contract_reference"]) == ("cancelled", "C/1 & co")


async def test_a_contract_that_is_saved_again_ends_in_the_same_second(
    operator: ConsoleClient, tenant: Tenant, api: Api, clock: FakeClock
) -> None:
    ends = (clock.now() + timedelta(days=30)).replace(hour=23, minute=59, second=59, microsecond=999_000)
    fields = {
        "organization_id": tenant.organization_id,
        "contract_reference": "C-1",
        "plan_id": CONTRACT_PLAN,
        "status": "active",
        "period_end": ends.strftime("%Y-%m-%dT%H:%M:%S.999"),
    }
    await operator.submit(f"{CATALOG}/contract", fields)
    [saved] = await entries(api, "audience_contracts")
    path = f"{CATALOG}/contract?organization_id={tenant.organization_id}&contract_reference=C-1"
    shown = typed(await operator.get(path), {**fields, "period_end_shown": "", "period_end_exact": ""})

    assert (await operator.submit(path, {**shown, "status": "cancelled"})).status == 303

    [contract] = await entries(api, "audience_contracts")
    assert contract["period_end"] == saved["period_end"] == format_timestamp(ends)


@pytest.mark.parametrize(
    ("changes", "status", "code"),
    [
        ({"organization_id": ""}, 422, "validation_failed"),
        ({"organization_id": "org_" + "x" * 22}, 404, "organization_not_found"),
        ({"plan_id": "plan_unknown"}, 404, "plan_not_found"),
        ({"period_end": "2001-01-01T00:00"}, 422, "validation_failed"),
        ({"period_end": "tomorrow"}, 422, "validation_failed"),
        ({"status": "cancelled"}, 404, "not_found"),
        ({"status": "sung"}, 422, "validation_failed"),
    ],
)
async def test_a_refused_contract_is_shown_again(
    operator: ConsoleClient, tenant: Tenant, changes: dict[str, str], status: int, code: str
) -> None:
    fields = {"organization_id": tenant.organization_id, "contract_reference": "C-1", "plan_id": CONTRACT_PLAN}
    fields |= {"status": "active", "period_end": "", **changes}

    page = await operator.submit(f"{CATALOG}/contract", fields)

    assert (page.status, page.trouble) == (status, code)
    assert typed(page, dict.fromkeys(("organization_id", "contract_reference", "period_end"), "")) == {
        name: fields[name] for name in ("organization_id", "contract_reference", "period_end")
    }


async def test_an_accounting_customer_is_named_and_changed(operator: ConsoleClient, tenant: Tenant, api: Api) -> None:
    fields = {"organization_id": tenant.organization_id, "thirdparty_id": "17"}

    page = await operator.follow(await operator.submit(f"{CATALOG}/customer", fields))

    assert "Radio Nordlicht" in page.text
    path = f"{CATALOG}/customer?organization_id={tenant.organization_id}"
    assert typed(await operator.get(path), fields) == fields
    await operator.submit(path, {**fields, "thirdparty_id": "18"})
    assert [each["thirdparty_id"] for each in await entries(api, "accounting_customers")] == [18]


async def test_a_third_party_of_another_organization_is_refused(
    operator: ConsoleClient, tenant: Tenant, api: Api
) -> None:
    other = await api.make_organization("Radio Mitte")
    await operator.submit(f"{CATALOG}/customer", {"organization_id": other, "thirdparty_id": "17"})

    fields = {"organization_id": tenant.organization_id, "thirdparty_id": "17"}
    page = await operator.submit(f"{CATALOG}/customer", fields)

    assert (page.status, page.trouble) == (409, "thirdparty_conflict")
    assert typed(page, fields) == fields


@pytest.mark.parametrize(
    ("path", "listed", "field", "other"),
    [
        ("plan", "plans", "plan_id", {"product": "codes", "name": "Studio", "monthly_code_quota": "5000"}),
        ("offer", "offers", "offer_id", {**OFFER, "entitlement_months": "12"}),
        ("contract", "audience_contracts", "contract_reference", {"plan_id": CONTRACT_PLAN, "status": "active"}),
        ("customer", "accounting_customers", "organization_id", {"thirdparty_id": "17"}),
    ],
)
async def test_the_form_of_a_new_entry_changes_none_that_is_there(
    operator: ConsoleClient, tenant: Tenant, api: Api, path: str, listed: str, field: str, other: dict[str, str]
) -> None:
    ids = {"plan_id": "plan_studio", "offer_id": "offer_prepaid", "contract_reference": "C-1"}
    fields = {**other, "organization_id": tenant.organization_id, "active": "true"}
    fields[field] = ids.get(field, tenant.organization_id)
    assert (await operator.submit(f"{CATALOG}/{path}", fields)).status == 303
    before = await entries(api, listed)
    changes = {name: f"{text}0" for name, text in other.items() if name in {"name", "amount_minor", "thirdparty_id"}}

    page = await operator.submit(f"{CATALOG}/{path}", {**fields, **changes, "status": "cancelled"})

    assert (page.status, page.trouble) == (422, "validation_failed")
    assert "This one exists already." in page.text
    assert await entries(api, listed) == before


@pytest.mark.parametrize("code", ["accounting_unavailable", "database_unavailable"])
async def test_what_was_typed_is_kept_when_something_is_out_of_order(
    operator: ConsoleClient, tenant: Tenant, code: str
) -> None:
    fields = {"organization_id": tenant.organization_id, "thirdparty_id": "17"}
    operator.core.refuse(f"PUT /v1/billing/admin/dolibarr/customers/{tenant.organization_id}", 503, code)

    page = await operator.submit(f"{CATALOG}/customer", fields)

    assert (page.status, page.trouble) == (503, code)
    assert typed(page, fields) == fields


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("plan", PLAN),
        ("offer", {**OFFER, "entitlement_months": "12"}),
        ("contract", {"organization_id": "org_x", "contract_reference": HOSTILE, "status": "active"}),
        ("customer", {"organization_id": "org_x", "thirdparty_id": "17"}),
    ],
)
async def test_a_form_is_kept_while_core_is_down(operator: ConsoleClient, path: str, fields: dict[str, str]) -> None:
    """Some of these pages need Core themselves."""
    operator.core.go_down()

    page = await operator.submit(f"{CATALOG}/{path}", fields)

    assert (page.status, page.trouble) == (503, "core_unreachable")
    assert typed(page, fields) == fields
    assert not page.find_all(".//body//script")


@pytest.mark.parametrize(
    "path",
    [
        "plan?plan_id=plan_gone",
        "offer?offer_id=offer_gone",
        "customer?organization_id=org_gone",
        "contract?organization_id=org_gone&contract_reference=C-1",
        "contract?contract_reference=C-1",
    ],
)
async def test_an_entry_that_is_not_there_is_no_page(operator: ConsoleClient, path: str) -> None:
    assert (await operator.get(f"{CATALOG}/{path}")).trouble == "page_not_found"


async def test_hostile_names_are_shown_as_text(operator: ConsoleClient, api: Api) -> None:
    organization_id = await api.make_organization(HOSTILE)
    assert (await put_plan(api, "plan_hostile", {**CODES_PLAN, "name": HOSTILE})).status == 200
    assert (await put_plan(api, "plan_audience", AUDIENCE_PLAN)).status == 200
    for offer_id, terms in (("offer_card", CARD_OFFER), ("offer_local", LOCAL_OFFER)):
        assert (await put_offer(api, offer_id, {**terms, "plan_id": "plan_hostile"})).status == 200
    customer = {"organization_id": organization_id, "thirdparty_id": "17"}
    await operator.submit(f"{CATALOG}/customer", customer)
    contract = {"organization_id": organization_id, "contract_reference": HOSTILE, "plan_id": CONTRACT_PLAN}
    await operator.submit(f"{CATALOG}/contract", {**contract, "status": "active"})

    for path in ("", "/plan?plan_id=plan_hostile", "/offer?provider=card"):
        page = await operator.get(f"{CATALOG}{path}")
        assert HOSTILE in page.text
        assert not page.find_all(".//body//script")
    catalog = await operator.get(CATALOG)
    assert catalog.text.count(HOSTILE) >= 3
    assert "TND 149.000" in catalog.text


async def test_the_catalogue_in_french(operator: ConsoleClient, clock: FakeClock) -> None:
    french = operator.other(language="fr").sign_in_as_operator(clock.now())

    assert "Contrats d’Audience" in (await french.get(CATALOG)).text
    assert "Nouveau forfait de Codes" in (await french.get(f"{CATALOG}/plan")).text


async def test_an_organisation_is_picked_by_its_name(operator: ConsoleClient, api: Api) -> None:
    for name in ("Radio Nordlicht", "Radio Süd", "Radio Süd-West"):
        await api.make_organization(name)
    shown = await operator.get(f"{CATALOG}/customer")
    assert "Radio Süd" in [option.text for option in shown.find_all(".//datalist/option")]

    whole = await operator.submit(f"{CATALOG}/customer", {"organization_id": "radio süd", "thirdparty_id": "17"})
    beginning = await operator.submit(f"{CATALOG}/customer", {"organization_id": "Radio Nord", "thirdparty_id": "18"})
    several = await operator.submit(f"{CATALOG}/customer", {"organization_id": "Radio", "thirdparty_id": "19"})
    unknown = await operator.submit(f"{CATALOG}/customer", {"organization_id": "Moon", "thirdparty_id": "19"})

    assert (whole.status, beginning.status) == (303, 303)
    assert {each["organization_name"] for each in await entries(api, "accounting_customers")} == {
        "Radio Süd",
        "Radio Nordlicht",
    }
    for page, words in ((several, "Several organisations"), (unknown, "No organisation")):
        assert (page.status, page.value("thirdparty_id")) == (422, "19")
        assert words in str(page.find(".//p[@id='refused-organization_id']").text)
