"""`PUT /v1/billing/admin/dolibarr/customers/{organization_id}`: which third party an organisation's invoices go to."""

import asyncio
from typing import Any

import pytest
from structlog.testing import capture_logs
from support.api.core_client import Answer, Api
from support.database.rival import Rival
from support.outside.accounting_stand_in import KEY, AccountingStandIn, Fault
from support.tenancy.people import People
from support.tenancy.platform_settings import put_setting
from support.tenancy.tenant import Tenant, make_tenant

REFERENCES = "SELECT organization_id FROM billing_references WHERE kind = 'thirdparty'"


async def put(api: Api, organization_id: str, thirdparty_id: Any) -> Answer:
    path = f"/v1/billing/admin/dolibarr/customers/{organization_id}"
    return await api.call("PUT", path, json={"thirdparty_id": thirdparty_id})


@pytest.fixture
async def configured(api: Api, stand_in: AccountingStandIn, rival: Rival) -> AccountingStandIn:
    """The accounting system of the platform."""
    await put_setting(api, "accounting_api_key", KEY)
    await rival.run(
        "INSERT INTO platform_configuration (name, value, updated_at) VALUES ('accounting_base_url', %s, now())",
        f'"{stand_in.url}"',
    )
    return stand_in


async def test_the_organisation_gets_its_third_party(tenant: Tenant, rival: Rival) -> None:
    with capture_logs() as logs:
        answer = await put(tenant.api, tenant.organization_id, 17)
    assert answer.status == 200
    assert answer.json == {
        "organization_id": tenant.organization_id,
        "organization_name": "Radio Nordlicht",
        "thirdparty_id": 17,
        "updated_at": answer.json["updated_at"],
    }
    assert await rival.audited("billing.accounting_customer_changed") == [("platform operator", None, {})]
    (logged,) = [line for line in logs if line["event"] == "accounting_customer_changed"]
    assert (logged["organization_id"], logged["subject_id"]) == (tenant.organization_id, "operator")


async def test_the_organisations_audit_log_does_not_name_the_administrator(
    tenant: Tenant, people: People, rival: Rival
) -> None:
    """Only the process log does."""
    administrator = people.person("root", realm_access={"roles": ["svc_platform_admin"]})
    with capture_logs() as logs:
        assert (await put(administrator, tenant.organization_id, 17)).status == 200
    assert await rival.audited("billing.accounting_customer_changed") == [("platform operator", None, {})]
    (logged,) = [line for line in logs if line["event"] == "accounting_customer_changed"]
    assert logged["subject_id"] == "root"


async def test_a_change_without_its_audit_entry_is_not_made(tenant: Tenant, rival: Rival) -> None:
    async with rival.holding("LOCK TABLE audit_entries IN SHARE MODE"):
        putting = await rival.while_waiting(put(tenant.api, tenant.organization_id, 17))
        await rival.kill_waiting_sessions()
        assert (await putting).code == "database_unavailable"
    assert await rival.rows("SELECT 1 FROM accounting_customers") == await rival.rows(REFERENCES) == []


@pytest.mark.parametrize("thirdparty_id", [0, -1, 2**31, 1.5, "17", True, None])
async def test_what_is_no_id_is_refused(tenant: Tenant, thirdparty_id: Any) -> None:
    answer = await put(tenant.api, tenant.organization_id, thirdparty_id)
    assert (answer.status, answer.code) == (422, "validation_failed")
    assert [error["pointer"] for error in answer.json["errors"]] == ["/thirdparty_id"]


async def test_the_largest_id_is_taken(tenant: Tenant) -> None:
    assert (await put(tenant.api, tenant.organization_id, 2**31 - 1)).json["thirdparty_id"] == 2**31 - 1


@pytest.mark.parametrize("organization_id", ["org_" + "u" * 22, "prj_" + "u" * 22, "ü"])
async def test_an_unknown_organisation(api: Api, configured: AccountingStandIn, organization_id: str) -> None:
    """The accounting system is not asked."""
    answer = await put(api, organization_id, 7)
    assert (answer.status, answer.code) == (404, "organization_not_found")
    assert configured.calls == []


async def test_an_organisation_that_is_being_deleted(tenant: Tenant, rival: Rival) -> None:
    await rival.run("UPDATE organizations SET deletion_requested_at = now()")
    answer = await put(tenant.api, tenant.organization_id, 7)
    assert (answer.status, answer.code) == (409, "resource_deletion_in_progress")


async def test_a_third_party_belongs_to_one_organisation(tenant: Tenant, rival: Rival) -> None:
    other = await make_tenant(tenant.api)
    assert (await put(tenant.api, tenant.organization_id, 7)).status == 200
    answer = await put(tenant.api, other.organization_id, 7)
    assert (answer.status, answer.code) == (409, "thirdparty_conflict")
    assert tenant.organization_id not in answer.body.decode()
    assert await rival.rows("SELECT organization_id FROM accounting_customers") == [(tenant.organization_id,)]
    assert len(await rival.audited("billing.accounting_customer_changed")) == 1


async def test_a_third_party_that_was_replaced_is_free(tenant: Tenant, rival: Rival) -> None:
    other = await make_tenant(tenant.api)
    for thirdparty_id in (7, 8, 8):
        assert (await put(tenant.api, tenant.organization_id, thirdparty_id)).json["thirdparty_id"] == thirdparty_id
    assert (await put(tenant.api, other.organization_id, 7)).status == 200
    assert sorted(await rival.rows(REFERENCES)) == sorted([(tenant.organization_id,), (other.organization_id,)])


async def test_of_two_first_third_parties_one_is_given_up(tenant: Tenant, rival: Rival) -> None:
    """Both begin without one; the second finds that of the first, and leaves it to others."""
    async with rival.holding("LOCK TABLE accounting_customers IN EXCLUSIVE MODE"):
        both = [asyncio.create_task(put(tenant.api, tenant.organization_id, number)) for number in (7, 8)]
        await rival.until_someone_waits(2)
    assert [answer.status for answer in await asyncio.gather(*both)] == [200, 200]
    assert await rival.rows(REFERENCES) == [(tenant.organization_id,)]


async def test_of_two_organisations_with_one_new_third_party_one_is_refused(tenant: Tenant, rival: Rival) -> None:
    other = await make_tenant(tenant.api)
    async with rival.holding("LOCK TABLE billing_references IN EXCLUSIVE MODE"):
        both = [asyncio.create_task(put(tenant.api, who.organization_id, 7)) for who in (tenant, other)]
        await rival.until_someone_waits(2)
    assert sorted(answer.status for answer in await asyncio.gather(*both)) == [200, 409]


async def test_a_third_party_that_its_owner_is_giving_up(tenant: Tenant, rival: Rival) -> None:
    """The second command waits until the first has committed, and then takes it."""
    other = await make_tenant(tenant.api)
    assert (await put(tenant.api, tenant.organization_id, 7)).status == 200
    async with rival.committing("DELETE FROM billing_references WHERE kind = 'thirdparty'"):
        taking = await rival.while_waiting(put(tenant.api, other.organization_id, 7))
    assert (await taking).status == 200


async def test_the_accounting_system_is_asked_where_it_is_configured(
    tenant: Tenant, configured: AccountingStandIn
) -> None:
    assert (await put(tenant.api, tenant.organization_id, 7)).status == 200
    answer = await put(tenant.api, tenant.organization_id, 9)
    assert (answer.status, answer.code) == (422, "validation_failed")
    assert [error["pointer"] for error in answer.json["errors"]] == ["/thirdparty_id"]
    assert [call.operation for call in configured.calls] == ["thirdparty", "thirdparty"]


FAULTS: list[Fault] = ["dropped", "half_body", "sql_error", "html", "forbidden_html", "nonsense", "oversized"]


@pytest.mark.parametrize("fault", FAULTS)
async def test_an_accounting_system_that_does_not_answer_properly(
    tenant: Tenant, configured: AccountingStandIn, rival: Rival, fault: Fault
) -> None:
    configured.faults["thirdparty"] = [fault]
    answer = await put(tenant.api, tenant.organization_id, 7)
    assert (answer.status, answer.code) == (503, "accounting_unavailable")
    assert b"llx_" not in answer.body
    assert await rival.rows(REFERENCES) == await rival.rows("SELECT 1 FROM accounting_customers") == []


async def test_a_wrong_key(tenant: Tenant, configured: AccountingStandIn) -> None:
    await put_setting(tenant.api, "accounting_api_key", "another-key-of-the-accounting-system")
    assert (await put(tenant.api, tenant.organization_id, 7)).code == "accounting_unavailable"
    assert configured.count("thirdparty") == 1


async def test_an_organisation_that_is_deleted_meanwhile(
    tenant: Tenant, configured: AccountingStandIn, rival: Rival
) -> None:
    """Nothing is locked while the accounting system answers, and nothing of the organisation comes back."""
    configured.hold("thirdparty")
    putting = asyncio.create_task(put(tenant.api, tenant.organization_id, 7))
    await configured.until_called("thirdparty")
    body = {"confirmation": tenant.organization_id}
    path = f"/v1/organizations/{tenant.organization_id}"
    assert (await tenant.api.call("DELETE", path, json=body)).status == 204
    configured.release()
    assert (await putting).code == "organization_not_found"
    assert await rival.rows(REFERENCES) == []
