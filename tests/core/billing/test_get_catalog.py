"""`GET /v1/billing/admin/catalog`."""

from support.api.core_client import Api
from support.billing.catalog import (
    AUDIENCE_PLAN,
    CARD_OFFER,
    LOCAL_OFFER,
    put_offer,
    put_plan,
    put_provider,
    read_catalog,
)
from support.database.rival import Rival

INSERT_CONTRACT = (
    "INSERT INTO subscriptions (organization_id, id, plan_id, product, audience_mode, provider, status,"
    " current_period_end, cancel_at_period_end, contract_reference, created_at, updated_at)"
    " VALUES (%s, %s, 'plan_audience_contract', 'audience', 'contract', 'contract', %s, %s, false, %s,"
    " '2026-11-20T10:00:00Z'::timestamptz + %s * interval '1 day', '2026-11-23T10:00:00Z')"
)
INSERT_CARD_SUBSCRIPTION = (
    "INSERT INTO subscriptions (organization_id, id, plan_id, product, provider, status, cancel_at_period_end,"
    " provider_reference, created_at, updated_at)"
    " VALUES (%s, 'bsu_card', 'plan_codes_starter', 'codes', 'card', 'active', false, 'sub_Marker', now(), now())"
)


async def test_it_holds_what_is_seeded_and_nothing_else_at_first(api: Api) -> None:
    catalog = await read_catalog(api)
    for seeded in (*catalog["providers"], *catalog["plans"]):
        assert seeded.pop("updated_at") is not None
    assert catalog == {
        "providers": [{"provider": "card", "enabled": False}, {"provider": "local", "enabled": False}],
        "plans": [
            {
                "plan_id": "plan_audience_contract",
                "name": "Audience Contract",
                "product": "audience",
                "monthly_event_quota": 5000,
                "active": True,
            },
            {
                "plan_id": "plan_codes_starter",
                "name": "Codes Starter",
                "product": "codes",
                "monthly_code_quota": 100,
                "active": True,
            },
        ],
        "offers": [],
        "audience_contracts": [],
        "accounting_customers": [],
    }


async def test_each_list_holds_what_its_put_answered(api: Api) -> None:
    """Inactive and disabled ones too."""
    provider = (await put_provider(api, "card")).json
    plan = (await put_plan(api, "plan_1", {**AUDIENCE_PLAN, "active": False})).json
    offers = [(await put_offer(api, f"offer_{n}", body)).json for n, body in enumerate((CARD_OFFER, LOCAL_OFFER))]
    catalog = await read_catalog(api)
    assert catalog["providers"][0] == provider
    assert catalog["plans"][0] == plan
    assert catalog["offers"] == offers


async def test_contracts_and_customers_of_every_organisation_are_listed(api: Api, rival: Rival) -> None:
    """Contracts whatever their status, an organisation's newest first; no other subscription, and no other fact."""
    first, second = sorted([await api.make_organization("Radio Süd"), await api.make_organization("Radio Nord")])
    await rival.run(INSERT_CONTRACT, first, "bsu_1", "expired", "2026-11-21T00:00:00Z", "C-1", 0)
    await rival.run(INSERT_CONTRACT, first, "bsu_2", "active", None, "C-2", 1)
    await rival.run(INSERT_CONTRACT, second, "bsu_3", "cancelled", None, "C-3", 0)
    await rival.run(INSERT_CARD_SUBSCRIPTION, first)
    for organization_id in (first, second):
        await rival.run(
            "INSERT INTO accounting_customers VALUES (%s, 2147483647, '2026-11-23T10:00:00Z')", organization_id
        )
    catalog = await read_catalog(api)
    shared = {"plan_id": "plan_audience_contract", "updated_at": "2026-11-23T10:00:00.000Z"}
    assert catalog["audience_contracts"] == [
        {"organization_id": first, "contract_reference": "C-2", "status": "active", "period_end": None, **shared},
        {
            "organization_id": first,
            "contract_reference": "C-1",
            "status": "expired",
            "period_end": "2026-11-21T00:00:00.000Z",
            **shared,
        },
        {"organization_id": second, "contract_reference": "C-3", "status": "cancelled", "period_end": None, **shared},
    ]
    names = dict(await rival.rows("SELECT id, name FROM organizations"))
    assert catalog["accounting_customers"] == [
        {
            "organization_id": organization_id,
            "organization_name": names[organization_id],
            "thirdparty_id": 2**31 - 1,
            "updated_at": "2026-11-23T10:00:00.000Z",
        }
        for organization_id in (first, second)
    ]


async def test_its_members_come_in_the_order_of_the_contract(api: Api, rival: Rival) -> None:
    organization_id = await api.make_organization()
    await rival.run(INSERT_CONTRACT, organization_id, "bsu_1", "active", None, "C-1", 0)
    catalog = await read_catalog(api)
    assert list(catalog) == ["providers", "plans", "offers", "audience_contracts", "accounting_customers"]
    assert list(catalog["audience_contracts"][0]) == [
        *("organization_id", "plan_id", "contract_reference", "status", "period_end", "updated_at")
    ]
