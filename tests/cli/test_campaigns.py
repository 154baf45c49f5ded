"""`soundmark campaigns` against a real Core: with an API key, and as the operator where a person is required."""

import json
from typing import Any

import pytest
from support.api.core_settings import OPERATOR_TOKEN
from support.processes.faulty_proxy import FaultyProxy
from typer.testing import CliRunner

from soundmark.cli import campaigns

from .conftest import Done, Tenant

UNKNOWN = "cmp_" + "0" * 22


def answered(done: Done) -> Any:
    """Return the one line of JSON that a command printed."""
    assert (done.status, done.err) == (0, ""), done
    assert done.out.count("\n") == 1
    return json.loads(done.out)


def create(tenant: Tenant, *arguments: str) -> Done:
    return tenant.run("campaigns", "create", *arguments, "--project", tenant.project_id, key=OPERATOR_TOKEN)


def test_a_campaign_is_created_with_its_schedule(tenant: Tenant) -> None:
    dates = ["--starts-at", "2026-01-01T00:00:00+01:00", "--ends-at", "2099-01-01T00:00:00Z"]
    campaign = answered(create(tenant, "Summer", *dates, "--json"))
    assert (campaign["name"], campaign["starts_at"], campaign["ends_at"], campaign["status"]) == (
        "Summer",
        "2025-12-31T23:00:00.000Z",
        "2099-01-01T00:00:00.000Z",
        "active",
    )
    done = create(tenant, "Winter [bold]")
    assert done.status == 0
    assert "Winter [bold]" in done.out


def test_a_name_that_is_taken_is_one_line(tenant: Tenant) -> None:
    tenant.make_campaign("Summer")
    assert create(tenant, "Summer").refusal.startswith("campaign_name_conflict (409)")


def test_a_server_key_may_not_create_a_campaign(tenant: Tenant) -> None:
    """API v1: only people may. The command says so, without showing the key."""
    done = tenant.run("campaigns", "create", "Summer", "--project", tenant.project_id)
    assert done.refusal.startswith("user_token_required (403)")
    assert tenant.key not in done.err


def test_campaigns_are_listed_a_page_at_a_time(tenant: Tenant) -> None:
    made = [tenant.make_campaign(name)["id"] for name in ("One", "Two", "Three")]
    listing = ["campaigns", "list", "--project", tenant.project_id]
    page = answered(tenant.run(*listing, "--limit", "2", "--json"))
    rest = answered(tenant.run(*listing, "--cursor", page["next_cursor"], "--json"))
    assert [one["id"] for one in [*page["data"], *rest["data"]]] == made[::-1]
    table = tenant.run(*listing, "--limit", "2")
    assert made[2] in table.out
    assert "Three" in table.out
    assert table.err.startswith("more: --cursor ")


def test_a_campaign_is_changed(tenant: Tenant) -> None:
    """What no option names stays."""
    campaign_id = tenant.make_campaign("Summer")["id"]

    def update(*arguments: str) -> Any:
        return answered(tenant.run("campaigns", "update", campaign_id, *arguments, "--json", key=OPERATOR_TOKEN))

    scheduled = update("--starts-at", "2026-01-01T00:00:00+01:00", "--ends-at", "2099-01-01T00:00:00Z")
    renamed = update("--name", "Winter", "--no-end")
    names_and_dates = [(one["name"], one["starts_at"], one["ends_at"]) for one in (scheduled, renamed)]
    assert names_and_dates == [
        ("Summer", "2025-12-31T23:00:00.000Z", "2099-01-01T00:00:00.000Z"),
        ("Winter", "2025-12-31T23:00:00.000Z", None),
    ]
    assert update("--no-start")["starts_at"] is None


def test_a_campaign_is_archived_and_its_codes_stay_valid(tenant: Tenant) -> None:
    campaign_id = tenant.make_campaign("Summer")["id"]
    (code,) = tenant.make_codes(1, campaign_id=campaign_id)
    for _ in range(2):
        done = tenant.run("campaigns", "archive", campaign_id, key=OPERATOR_TOKEN)
        assert done == Done(0, f"{campaign_id} is archived\n", "")
    assert answered(tenant.run("codes", "show", code["xr_id"], "--json"))["status"] == "active"
    refused = tenant.run("campaigns", "update", campaign_id, "--name", "Winter", key=OPERATOR_TOKEN)
    assert refused.refusal.startswith("campaign_archived (409)")


def test_a_campaign_is_stopped_and_stopped_again(tenant: Tenant) -> None:
    campaign = tenant.make_campaign()
    codes = tenant.make_codes(3, campaign_id=campaign["id"])
    done = tenant.run("campaigns", "stop", campaign["id"])
    assert (done.status, done.out) == (0, f"{campaign['id']} is archived; 3 Codes were revoked now\n")
    assert tenant.answer(f"/v1/codes/{codes[0]['xr_id']}")["status"] == "revoked"
    again = answered(tenant.run("campaigns", "stop", campaign["id"], "--json"))
    assert (again["revoked_count"], again["campaign"]["status"]) == (0, "archived")


def test_a_stop_says_until_when_offline_packs_are_valid(tenant: Tenant) -> None:
    campaign = tenant.make_campaign()
    query = {"organization_id": tenant.organization_id, "project_id": tenant.project_id}
    body = {"campaign_id": None, "valid_for_s": 300}
    pack = tenant.service.client.post("/v1/offline-packs", params=query, json=body).raise_for_status().json()
    done = tenant.run("campaigns", "stop", campaign["id"])
    told = f"receivers without a network answer from offline packs until {pack['valid_until']}"
    assert done.out == f"{campaign['id']} is archived; 0 Codes were revoked now; {told}\n"


def test_a_stop_succeeds_over_a_connection_that_breaks(tenant: Tenant) -> None:
    campaign = tenant.make_campaign()
    tenant.make_codes(1, campaign_id=campaign["id"])
    with FaultyProxy(tenant.service.url, "request lost", "answer lost") as proxy:
        done = tenant.run("campaigns", "stop", campaign["id"], url=proxy.url)
    assert done.status == 0
    assert len(proxy.passed) == 3
    assert tenant.answer("/v1/codes", status="active")["data"] == []


def test_a_summary_counts_the_codes_by_status(tenant: Tenant) -> None:
    campaign = tenant.make_campaign()
    codes = tenant.make_codes(3, campaign_id=campaign["id"])
    tenant.service.revoke(codes[0])
    summary = answered(tenant.run("campaigns", "summary", campaign["id"], "--json"))
    assert summary == tenant.answer(f"/v1/campaigns/{campaign['id']}/summary")
    assert summary["counts"] == {"issued": 3, "active": 2, "expired": 0, "revoked": 1, "audience_enabled": 0}
    done = tenant.run("campaigns", "summary", campaign["id"])
    facts = [[part.strip() for part in line.strip("│┃").split("│")] for line in done.out.splitlines() if "│" in line]
    assert ["Issued", "3"] in facts
    assert ["Revoked", "1"] in facts


@pytest.mark.parametrize("command", ["stop", "summary"])
def test_a_missing_campaign_is_one_line(tenant: Tenant, command: str) -> None:
    assert tenant.run("campaigns", command, UNKNOWN).refusal.startswith("campaign_not_found (404)")


def test_without_a_service_it_is_one_line(tenant: Tenant) -> None:
    done = tenant.run("campaigns", "stop", UNKNOWN, url="http://127.0.0.1:9")
    assert done.refusal.startswith("Nothing answers at http://127.0.0.1:9 (connection refused).")


@pytest.mark.parametrize(
    "arguments",
    [
        ("create", "--project", "prj_1"),
        ("create", "Summer", "--project", "prj_1", "--starts-at", "soon"),
        ("list", "--project", "prj_1", "--limit", "0"),
        ("stop",),
        ("summary",),
        ("archive",),
        ("update", UNKNOWN),
        ("update", UNKNOWN, "--ends-at", "2099-01-01T00:00:00Z", "--no-end"),
        ("update", UNKNOWN, "--starts-at", "2099-01-01T00:00:00Z", "--no-start"),
    ],
)
def test_wrong_usage_is_status_2_and_calls_nobody(arguments: tuple[str, ...]) -> None:
    done = CliRunner().invoke(campaigns.app, [*arguments, "--organization", "org_1"])
    assert (done.exit_code, done.stdout) == (2, "")
    assert "Usage: " in done.stderr
