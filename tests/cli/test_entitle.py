"""`soundmark platform entitle`: an entitlement in Core, in its audit log, and in Audience."""

import asyncio
from datetime import UTC, datetime

import pytest
from support.api.core_client import Api
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock
from support.processes.running_apps import make_worker
from support.tenancy.tenant import Tenant, make_tenant

from soundmark.core.features.audience.integrations import jobs
from soundmark.core.problems import AudienceUnavailable
from soundmark.kit.crypto.secret import Secret

from .conftest import Done, run

Settings = dict[str, str]
END = datetime(2099, 1, 1, tzinfo=UTC)


@pytest.fixture
def settings(database_url: Secret) -> Settings:
    """The settings of the commands under test."""
    return {"CORE_DATABASE_URL": database_url.reveal()}


@pytest.fixture
async def tenant(api: Api) -> Tenant:
    """An organisation with one project."""
    return await make_tenant(api)


async def entitle(settings: Settings, organization_id: str, *more: str, mode: str = "contract") -> Done:
    arguments = ("platform", "entitle", organization_id, "--mode", mode, *more)
    return await asyncio.to_thread(lambda: run(*arguments, settings=settings))


async def stored(rival: Rival) -> list[tuple[object, ...]]:
    return await rival.rows(
        "SELECT organization_id, mode, monthly_event_quota, ends_at, revision FROM audience_entitlements ORDER BY mode"
    )


async def test_an_entitled_organisation_may_measure(tenant: Tenant, rival: Rival, settings: Settings) -> None:
    done = await entitle(
        settings, tenant.organization_id, "--monthly-events", "5000", "--until", "2099-01-01T01:00:00+01:00"
    )
    sentence = f"{tenant.organization_id} can measure 5000 events a month as contract, until 2099-01-01T00:00:00.000Z\n"
    assert (done.status, done.out) == (0, sentence)
    assert await stored(rival) == [(tenant.organization_id, "contract", 5000, END, 1)]
    metadata = {
        "product": "audience",
        "mode": "contract",
        "monthly_event_quota": 5000,
        "ends_at": "2099-01-01T00:00:00.000Z",
        "revision": 1,
    }
    assert await rival.audited("billing.entitlement_changed") == [("platform operator", None, metadata)]
    made = await tenant.make_integration(mode="contract", retention_days=730)
    assert made["mode"] == "contract"


async def contracts(rival: Rival) -> list[tuple[object, ...]]:
    return await rival.rows(
        "SELECT contract_reference, audience_mode, status, monthly_quota, current_period_end FROM subscriptions"
        " ORDER BY contract_reference"
    )


async def test_it_is_a_contract_like_any_other(tenant: Tenant, rival: Rival, settings: Settings) -> None:
    await entitle(settings, tenant.organization_id, "--monthly-events", "5000", "--until", "2099-01-01T00:00:00Z")
    await entitle(settings, tenant.organization_id, "--monthly-events", "7", mode="self_service")

    assert await contracts(rival) == [
        (f"operator-contract-{tenant.organization_id}", "contract", "active", 5000, END),
        (f"operator-self_service-{tenant.organization_id}", "self_service", "active", 7, None),
    ]
    listed = (await tenant.api.get("/v1/billing/subscriptions", params=tenant.query)).json["data"]
    assert [(each["provider"], each["plan_name"]) for each in listed] == [("contract", "Audience Contract")] * 2


async def test_it_replaces_an_administrators_contract_and_is_replaced_by_one(
    tenant: Tenant, rival: Rival, settings: Settings
) -> None:
    path = f"/v1/billing/admin/audience-contracts/{tenant.organization_id}"
    body = {"plan_id": "plan_audience_contract", "contract_reference": "C-1", "status": "active"}
    assert (await tenant.api.call("PUT", path, json=body)).status == 200

    await entitle(settings, tenant.organization_id, "--monthly-events", "7")

    assert [(row[0], row[2]) for row in await contracts(rival)] == [
        ("C-1", "cancelled"),
        (f"operator-contract-{tenant.organization_id}", "active"),
    ]
    assert (await tenant.api.call("PUT", path, json=body)).status == 200
    assert [row[2] for row in await contracts(rival)] == ["active", "cancelled"]


async def test_a_past_end_takes_it_away_now(tenant: Tenant, rival: Rival, settings: Settings) -> None:
    await entitle(settings, tenant.organization_id, "--monthly-events", "7")
    done = await entitle(settings, tenant.organization_id, "--monthly-events", "7", "--until", "2020-01-01T00:00:00Z")

    assert done.status == 0
    assert [row[2] for row in await contracts(rival)] == ["expired"]
    ((_, _, quota, ends_at, revision),) = await stored(rival)
    assert (quota, revision) == (7, 2)
    assert ends_at is not None
    answer = await tenant.api.post("/v1/audience/integrations", json=tenant.integration_body(mode="contract"))
    assert answer.code == "entitlement_required"
    await entitle(settings, tenant.organization_id, "--monthly-events", "9")
    assert [(row[2], row[3]) for row in await contracts(rival)] == [("active", 9)]


async def test_a_reference_that_another_organisation_has_is_refused(
    tenant: Tenant, rival: Rival, settings: Settings
) -> None:
    other = await make_tenant(tenant.api)
    body = {
        "plan_id": "plan_audience_contract",
        "contract_reference": f"operator-contract-{tenant.organization_id}",
        "status": "active",
    }
    path = f"/v1/billing/admin/audience-contracts/{other.organization_id}"
    assert (await tenant.api.call("PUT", path, json=body)).status == 200

    refusal = (await entitle(settings, tenant.organization_id, "--monthly-events", "5")).refusal

    assert "another organisation has the contract reference" in refusal
    assert len(await contracts(rival)) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        ("--monthly-events", "-1"),
        ("--monthly-events", str(2**53)),
        ("--monthly-events", "5", "--until", "tomorrow"),
        ("--monthly-events", "5", "--mode", "demo"),
        (),
    ],
    ids=str,
)
async def test_wrong_usage_changes_nothing(
    tenant: Tenant, rival: Rival, settings: Settings, wrong: tuple[str, ...]
) -> None:
    assert (await entitle(settings, tenant.organization_id, *wrong)).status == 2
    assert await stored(rival) == []


async def test_an_unknown_organisation_is_not_entitled(tenant: Tenant, rival: Rival, settings: Settings) -> None:
    refusal = (await entitle(settings, "nobody", "--monthly-events", "5")).refusal
    assert "there is no organisation" in refusal
    assert (await stored(rival), await rival.audited("billing.entitlement_changed")) == ([], [])
    assert tenant.organization_id not in refusal


async def test_an_organisation_that_is_being_deleted_is_not_entitled(
    tenant: Tenant, rival: Rival, settings: Settings
) -> None:
    await rival.run("UPDATE organizations SET deletion_requested_at = now()")
    refusal = (await entitle(settings, tenant.organization_id, "--monthly-events", "5")).refusal
    assert refusal.endswith("or it is being deleted")
    assert await stored(rival) == []


async def test_an_entitlement_without_its_audit_entry_is_not_made(
    tenant: Tenant, rival: Rival, settings: Settings
) -> None:
    async with rival.holding("LOCK TABLE audit_entries IN SHARE MODE"):
        entitling = await rival.while_waiting(entitle(settings, tenant.organization_id, "--monthly-events", "5"))
        await rival.kill_waiting_sessions()
        assert (await entitling).refusal == "Core's database does not answer"
    assert await stored(rival) == []
    assert await rival.rows("SELECT FROM procrastinate_jobs WHERE task_name = 'project_entitlement'") == []


async def test_a_job_of_the_same_transaction_sends_the_entitlement_to_audience(
    tenant: Tenant, rival: Rival, measuring: Rival, settings: Settings, measuring_url: str, clock: FakeClock
) -> None:
    """The job reads the entitlement when it runs, so late and repeated jobs send the same."""
    await tenant.give_cell(rival)
    await entitle(settings, tenant.organization_id, "--monthly-events", "5", "--until", "2099-01-01T00:00:00Z")
    (job,) = await rival.rows("SELECT lock, args FROM procrastinate_jobs WHERE task_name = 'project_entitlement'")
    ids = {"organization_id": tenant.organization_id, "mode": "contract"}
    assert job == (f"project_entitlement:{tenant.organization_id}:contract", ids)
    await entitle(settings, tenant.organization_id, "--monthly-events", "9")
    database_url = Secret(settings["CORE_DATABASE_URL"])
    async with make_worker(database_url, clock, AUDIENCE_URL=measuring_url) as ctx:
        for _ in range(2):
            await jobs.project_entitlement(ctx, **ids)  # type: ignore[arg-type]  # a mode
    rows = await measuring.rows(
        "SELECT organization_id, mode, monthly_event_quota, ends_at, revision FROM entitlements"
    )
    assert rows == [(tenant.organization_id, "contract", 9, None, 2)]


async def test_a_job_is_run_again_while_audience_is_down(
    tenant: Tenant, rival: Rival, settings: Settings, clock: FakeClock
) -> None:
    await tenant.give_cell(rival)
    await entitle(settings, tenant.organization_id, "--monthly-events", "5")
    async with make_worker(Secret(settings["CORE_DATABASE_URL"]), clock) as ctx:
        with pytest.raises(AudienceUnavailable):
            await jobs.project_entitlement(ctx, organization_id=tenant.organization_id, mode="contract")
        await jobs.project_entitlement(ctx, organization_id="org_" + "A" * 22, mode="contract")
