"""An unavailable database: every published operation reports it, and works again when the database is back."""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
from support.api.core_client import Answer, Api
from support.api.core_settings import core_settings
from support.api.published_contract import PROBLEM_TYPE
from support.database.rival import Rival
from support.processes.running_apps import running_core
from support.tenancy.tenant import Tenant, make_tenant

from soundmark.embedded.postgres import RunningCluster
from soundmark.kit.crypto.secret import Secret


@pytest.fixture
def superuser(cluster: RunningCluster) -> Rival:
    """A connection of the superuser."""
    return Rival(cluster.superuser_url)


# Answers that need a database.
KNOWN = {
    "abuse_report_not_found",
    "api_key_not_found",
    "campaign_not_found",
    "checkout_not_found",
    "code_issue_not_found",
    "confirmation_mismatch",
    "customer_unavailable",
    "decode_certificate_not_found",
    "deletion_certificate_not_found",
    "integration_not_found",
    "invitation_invalid",
    "invitation_not_found",
    "job_not_found",
    "log_entry_not_found",
    "member_not_found",
    "offer_not_found",
    "plan_not_found",
    "payment_provider_unavailable",  # Nobody has configured one here.
    "project_name_conflict",
    "webhook_endpoint_not_found",
    "webhook_event_not_found",
    "release_readiness_unavailable",  # No worker runs here.
    "support_unavailable",  # Nor a desk.
    "ticket_not_found",
}
UNSIGNED = (401, "unauthenticated")


@pytest.fixture
async def api(spare_database_url: Secret, audio_url: str, timely_audience_url: str) -> AsyncIterator[Api]:
    """A Core of its own on the database that goes away, beside components that stay."""
    settings = core_settings(spare_database_url, audio_url=audio_url, audience_url=timely_audience_url)
    async with running_core(settings) as client:
        yield client


@contextlib.asynccontextmanager
async def outage(superuser: Rival) -> AsyncIterator[None]:
    """Keep the database from having or accepting connections, as when its machine is gone."""
    await superuser.run("ALTER DATABASE core_spare ALLOW_CONNECTIONS false")
    try:
        await superuser.run("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = 'core_spare'")
        yield
    finally:
        await superuser.run("ALTER DATABASE core_spare ALLOW_CONNECTIONS true")


async def operations(api: Api) -> list[tuple[str, str, dict[str, Any]]]:
    """Return method, path template and description of every published operation, those that only read first."""
    paths = (await api.published()).document["paths"]
    found = [(method, path, operation) for path, methods in paths.items() for method, operation in methods.items()]
    return sorted(found, key=lambda each: each[0] != "get")


async def ask(tenant: Tenant, code: dict[str, Any], method: str, path: str, operation: dict[str, Any]) -> Answer:
    """Call an operation with a valid request.

    Ids of existing resources fill path, query and body by their names; the rest of a body is its example.
    """
    known = {
        "organization_id": tenant.organization_id,
        "project_id": tenant.project_id,
        "xr_id": code["xr_id"],
        "xr_ids": [code["xr_id"]],
        "broadcast_token": code["broadcast_token"],
        "name": "smtp_host",
        # Of a resource that does not exist, which only the database can tell.
        "api_key_id": "key_" + "A" * 22,
        "invitation_id": "inv_" + "A" * 22,
        "campaign_id": "cmp_" + "A" * 22,
        "integration_id": "int_" + "A" * 22,
        "subject_id": "nobody",
        "certificate_id": "dct_" + "A" * 22,
        "provider": "card",
        "offer_id": "offer_of_the_outage",
        "checkout_id": "bco_" + "A" * 22,
        "endpoint_id": "whe_" + "A" * 22,
        "event_id": "evn_" + "A" * 22,
        "ticket_id": "tkt_" + "A" * 22,
        "payment_id": "a-payment-of-nobody",
        "secret": "a-secret-of-nobody",
        "digest": "A" * 43,
        "level": "0",
        "number": "000.p/1",
        "report_id": "abr_" + "A" * 22,
        "system": "accounting",
        "job_id": "1",
    }
    names = {each["name"] for each in operation.get("parameters", ()) if each["in"] == "query"}
    options: dict[str, Any] = {"params": {name: known[name] for name in sorted(names & known.keys())}}
    if any(each["name"] == "Idempotency-Key" and each["required"] for each in operation.get("parameters", ())):
        options["headers"] = {"Idempotency-Key": "of-nothing-that-was-issued"}
    if "requestBody" in operation:
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        schemas = (await tenant.api.published()).document["components"]["schemas"]
        # An event has no example: it needs a proof signed by Core, and a signature over its bytes.
        example = schemas.get(schema.get("$ref", "").rpartition("/")[2], {}).get("examples", [{}])[0]
        options["json"] = {name: known.get(name, value) for name, value in example.items()}
    # The example of a plan is one of Codes, and its product never changes.
    in_path = {**known, "plan_id": "plan_codes_starter"}
    filled = re.sub(r"\{(\w+)\}", lambda name: in_path[name[1]], path)
    return await tenant.api.call(method.upper(), filled, **options)


async def ask_everything(tenant: Tenant, code: dict[str, Any]) -> dict[str, Answer]:
    """Return the response of every operation, by its id, all requested at once."""
    calls = await operations(tenant.api)
    answers = await asyncio.gather(*(ask(tenant, code, *each) for each in calls))
    return {operation["operationId"]: answer for (_, _, operation), answer in zip(calls, answers, strict=True)}


async def test_every_operation_reports_the_outage_and_works_again_without_a_restart(api: Api, superuser: Rival) -> None:
    organization_id = await api.make_organization()
    tenant = Tenant(api, organization_id, await api.make_project(organization_id, "Evening show"))
    code = await tenant.make_code()

    async with outage(superuser):
        away = await ask_everything(tenant, code)
    # The settings alone decide who the operator is.
    assert away.pop("get_caller").status == 200
    answered = {name: (answer.status, answer.code) for name, answer in away.items()}
    # An event passes through to Audience, which refuses this one, because nobody signed it.
    assert answered.pop("deliver_event") == UNSIGNED
    assert answered == dict.fromkeys(answered, (503, "database_unavailable"))
    assert {answer.headers["cache-control"] for answer in away.values()} == {"no-store"}

    async with asyncio.timeout(30):
        while (await api.get("/readyz")).status != 200 or (await api.resolve(code["broadcast_token"])).status == 503:
            pass
    for method, path, operation in await operations(api):
        answer = await ask(tenant, code, method, path, operation)
        is_done = answer.status in {200, 201, 202}
        is_as_asked = is_done or answer.code in KNOWN or (answer.status, answer.code) == UNSIGNED
        assert is_as_asked, (operation["operationId"], answer.body)


async def test_every_operation_documents_database_unavailable(api: Api) -> None:
    def published(operation: dict[str, Any]) -> bool:
        answer = operation["responses"].get("503", {"content": {}})
        return "database_unavailable" in answer["content"].get(PROBLEM_TYPE, {"examples": {}})["examples"]

    assert [operation["operationId"] for _, _, operation in await operations(api) if not published(operation)] == []


async def test_nothing_is_written_because_of_the_outage(api: Api, superuser: Rival) -> None:
    """A 503 means that nothing was changed, and nothing is done later either."""
    tenant = await make_tenant(api)
    code = await tenant.make_code()
    async with outage(superuser):
        refused = await asyncio.gather(
            tenant.revoke(code["xr_id"]),
            api.post("/v1/codes", json=tenant.code_body()),
            api.post("/v1/projects", json={"organization_id": tenant.organization_id, "name": "Evening show"}),
            api.post("/v1/organizations", json={"name": "Radio Suedlicht"}),
        )
    assert {(answer.status, answer.code) for answer in refused} == {(503, "database_unavailable")}
    listed: dict[str, list[Any]] = {}
    async with asyncio.timeout(30):
        for path in ("/v1/codes", "/v1/projects", "/v1/organizations"):
            params = {} if path == "/v1/organizations" else tenant.query
            while (answer := await api.get(path, params=params)).status == 503:
                pass
            listed[path] = answer.json["data"]
    assert [entry["status"] for entry in listed["/v1/codes"]] == ["active"]
    assert [len(entries) for entries in listed.values()] == [1, 1, 1]


async def test_a_process_reports_that_it_is_up_but_not_ready(api: Api, superuser: Rival) -> None:
    """So that it is taken out of service but not restarted."""
    async with outage(superuser):
        assert (await api.get("/healthz")).status == 200
        answer = await api.get("/readyz")
        assert (answer.status, answer.json["unavailable"]) == (503, ["database"])
    async with asyncio.timeout(30):
        while (await api.get("/readyz")).status != 200:
            pass


async def test_a_database_that_accepts_no_writes_is_unavailable_until_it_does(api: Api, superuser: Rival) -> None:
    """After a switchover, the primary's address may lead to a standby, where a revoked Code may still be active."""
    tenant = await make_tenant(api)
    code = await tenant.make_code()
    await superuser.run("ALTER DATABASE core_spare SET default_transaction_read_only = on")
    try:
        await superuser.run("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = 'core_spare'")
        for answer in (
            await api.post("/v1/organizations", json={"name": "Radio Suedlicht"}),
            await tenant.revoke(code["xr_id"]),
            await api.get(f"/v1/resolve/{code['broadcast_token']}"),
        ):
            assert (answer.status, answer.code) == (503, "database_unavailable")
        ready = await api.get("/readyz")
        assert (ready.status, "database_read_only" in ready.json["unavailable"]) == (503, True)
    finally:
        await superuser.run("ALTER DATABASE core_spare RESET default_transaction_read_only")
    async with asyncio.timeout(30):
        while (await api.post("/v1/organizations", json={"name": "Radio Suedlicht"})).status != 201:
            pass
    assert (await api.get(f"/v1/resolve/{code['broadcast_token']}")).status == 200
