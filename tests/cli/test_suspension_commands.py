"""`soundmark platform organizations`, `suspend` and `restore`, on a real database."""

import asyncio
import json

import pytest
from support.api.core_client import Api
from support.api.core_settings import MASTER_KEY
from support.database.rival import Rival
from support.tenancy.tenant import Tenant, make_tenant

from soundmark.kit.crypto.secret import Secret

from .conftest import Done, run


@pytest.fixture
async def tenant(api: Api) -> Tenant:
    """An organisation with one project."""
    return await make_tenant(api)


@pytest.fixture
def settings(database_url: Secret) -> dict[str, str]:
    """The settings of the commands under test."""
    return {"CORE_DATABASE_URL": database_url.reveal()}


async def platform(settings: dict[str, str], *arguments: str) -> Done:
    return await asyncio.to_thread(lambda: run("platform", *arguments, settings=settings))


async def test_an_organisation_is_suspended_listed_and_restored(
    tenant: Tenant, rival: Rival, settings: dict[str, str]
) -> None:
    """It acts on the database as the API does, with the same audit entries."""
    code = await tenant.make_code()
    done = await platform(settings, "suspend", tenant.organization_id, "--reason", " Spam. ", "--json")
    assert (done.status, json.loads(done.out)["suspension_reason"]) == (0, "Spam.")
    assert (await tenant.api.resolve(code["broadcast_token"])).status == 404
    listed = await platform(settings, "organizations", "--status", "suspended", "--search", "radio", "--json")
    assert [row["id"] for row in json.loads(listed.out)["data"]] == [tenant.organization_id]
    table = await platform(settings, "organizations")
    assert "Spam." in table.out
    restored = await platform(settings, "restore", tenant.organization_id)
    assert restored.status == 0
    assert (await tenant.api.resolve(code["broadcast_token"])).status == 200
    for action in ("organization.suspended", "organization.restored"):
        assert await rival.audited(action) == [("platform operator", None, {})]


async def test_a_suspension_says_until_when_offline_packs_are_valid(tenant: Tenant, settings: dict[str, str]) -> None:
    assert "there are none" in (await platform(settings, "suspend", tenant.organization_id, "--reason", "Spam.")).out
    await platform(settings, "restore", tenant.organization_id)
    pack = await tenant.make_pack()

    done = await platform(settings, "suspend", tenant.organization_id, "--reason", "Spam.")

    shown = [line for line in done.out.splitlines() if "Offline packs valid until" in line]
    assert pack["valid_until"][:16].replace("T", " ") in shown[0].replace("T", " ")


@pytest.mark.parametrize("organization_id", ["org_" + "A" * 22, "nobody", "org_\N{SNOWMAN}"])
async def test_an_unknown_organisation_is_refused(settings: dict[str, str], organization_id: str, api: Api) -> None:
    for arguments in (("suspend", organization_id, "--reason", "Spam."), ("restore", organization_id)):
        done = await platform(settings, *arguments)
        assert (done.status, "there is no organisation" in done.err) == (1, True), api


@pytest.mark.parametrize("reason", [(), ("--reason", " "), ("--reason", "a" * 501), ("--reason", "\x1b[2J")])
async def test_a_suspension_needs_a_reason(tenant: Tenant, settings: dict[str, str], reason: tuple[str, ...]) -> None:
    done = await platform(settings, "suspend", tenant.organization_id, *reason)
    assert done.status == 2
    (shown,) = (await tenant.api.get("/v1/organizations")).json["data"]
    assert shown["suspended_at"] is None


async def test_reports_of_abuse_are_listed_with_what_people_wrote(tenant: Tenant, settings: dict[str, str]) -> None:
    code = await tenant.make_code()
    body = {
        "token": code["broadcast_token"],
        "category": "malware",
        "text": "A fake update.",
        "contact": "me@example.org",
    }
    assert (await tenant.api.other(token=None, peer="198.20.0.1").post("/v1/abuse-reports", json=body)).status == 202
    with_key = {**settings, "MASTER_KEY": MASTER_KEY}
    done = await platform(with_key, "abuse-reports", "--status", "open", "--json")
    (report,) = json.loads(done.out)["data"]
    assert (report["xr_id"], report["text"], report["contact"]) == (code["xr_id"], "A fake update.", "me@example.org")
    assert report["id"] in (await platform(with_key, "abuse-reports")).out
    closed = await platform(with_key, "close-abuse-report", report["id"], "--note", "Suspended.", "--json")
    changed = {"status": "closed", "note": "Suspended.", "closed_at": json.loads(closed.out)["closed_at"]}
    assert json.loads(closed.out) == {**report, **changed}
    assert json.loads((await platform(with_key, "abuse-reports", "--status", "open", "--json")).out)["data"] == []
    reopened = await platform(with_key, "reopen-abuse-report", report["id"])
    assert ("open" in reopened.out, "Suspended." in reopened.out) == (True, False)
    assert json.loads((await platform(with_key, "abuse-reports", "--json")).out)["data"] == [report]
    other_key = {**settings, "MASTER_KEY": "A" * 43}
    refused = await platform(other_key, "abuse-reports")
    assert (refused.status, "master key does not open" in refused.err) == (1, True)


async def test_an_unknown_report_and_a_malformed_note_are_refused(settings: dict[str, str], api: Api) -> None:
    with_key = {**settings, "MASTER_KEY": MASTER_KEY}
    for command in ("close-abuse-report", "reopen-abuse-report"):
        for report_id in ("abr_" + "A" * 22, "nobody", "abr_\N{SNOWMAN}"):
            done = await platform(with_key, command, report_id)
            assert (done.status, "there is no report" in done.err) == (1, True), api
        for note in ("", "a" * 2001):
            assert (await platform(with_key, command, "abr_" + "A" * 22, "--note", note)).status == 2


async def test_a_list_that_goes_on_says_so(settings: dict[str, str], api: Api) -> None:
    for name in ("One", "Two"):
        await api.make_organization(name)
    done = await platform(settings, "organizations", "--limit", "1")
    assert "there are more than 1" in done.out
