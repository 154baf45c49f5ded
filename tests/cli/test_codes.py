"""`soundmark codes list`, `show` and `revoke`, with an API key, against a real Core."""

import json
from pathlib import Path

import pytest
from soundmark_sdk import hear
from support.api.core_settings import OPERATOR_TOKEN
from support.tenancy.tenant import INTENT
from typer.testing import CliRunner

from soundmark.cli import codes

from .conftest import Tenant, answered, cells

UNKNOWN = "xr_" + "0" * 22


def test_json_equals_the_apis_response(tenant: Tenant) -> None:
    code = answered(tenant.run("codes", "issue", *tenant.issuing, "--json"))
    assert code == tenant.answer(f"/v1/codes/{code['xr_id']}")
    assert answered(tenant.run("codes", "show", code["xr_id"], "--json")) == code
    assert answered(tenant.run("codes", "list", "--json")) == tenant.answer("/v1/codes")
    revoked = answered(tenant.run("codes", "revoke", code["xr_id"], "--json"))
    assert revoked == tenant.answer(f"/v1/codes/{code['xr_id']}")


def test_a_list_is_filtered_and_paged(tenant: Tenant) -> None:
    campaign = tenant.make_campaign()
    codes = tenant.make_codes(3, campaign_id=campaign["id"], issuer="Another")
    tenant.make_codes(1)
    filters = [
        "--campaign",
        campaign["id"],
        "--issuer",
        "Another",
        "--status",
        "active",
        "--project",
        tenant.project_id,
    ]
    filters += ["--created-from", "2020-01-01T00:00:00Z", "--created-to", "2099-01-01T00:00:00Z"]
    page = answered(tenant.run("codes", "list", *filters, "--limit", "2", "--json"))
    rest = answered(tenant.run("codes", "list", *filters, "--cursor", page["next_cursor"], "--json"))
    seen = [code["xr_id"] for code in [*page["data"], *rest["data"]]]
    assert sorted(seen) == sorted(code["xr_id"] for code in codes)
    assert rest["next_cursor"] is None

    table = tenant.run("codes", "list", *filters, "--limit", "2")
    assert table.status == 0
    assert all(code["broadcast_frame"] in table.out for code in page["data"])
    assert table.err.startswith("more: --cursor ")
    quiet = tenant.run("codes", "list", *filters, "--limit", "2", "--quiet")
    assert (quiet.out.split(), quiet.err) == ([code["xr_id"] for code in page["data"]], table.err)
    assert answered(tenant.run("codes", "list", "--status", "revoked", "--json"))["data"] == []


def test_a_list_is_ordered_searched_and_shows_intents(tenant: Tenant) -> None:
    """An issuer's text must not control the terminal."""
    hostile = {"type": "link", "action": "open", "resource": {"url": "https://one.example/\x1b[2J"}}
    (one,) = tenant.make_codes(1, intent=hostile, expires_at="2098-01-01T00:00:00Z")
    (two,) = tenant.make_codes(1, expires_at="2097-01-01T00:00:00Z")
    by_expiry = answered(tenant.run("codes", "list", "--sort", "expires_at", "--order", "asc", "--json"))
    assert [code["xr_id"] for code in by_expiry["data"]] == [two["xr_id"], one["xr_id"]]
    oldest = tenant.run("codes", "list", "--order", "asc", "--quiet")
    assert oldest.out.split() == [one["xr_id"], two["xr_id"]]
    search = ("codes", "list", "--address-prefix", "HTTPS://ONE", "--include-intent")
    assert [code["intent"] for code in answered(tenant.run(*search, "--json"))["data"]] == [hostile]
    shown = "".join(row[-1] for row in cells(tenant.run(*search)))  # A long intent takes several lines.
    assert "https://one.example" in shown.replace(" ", "")
    assert shown.isprintable()


def test_a_code_is_shown_with_its_intent(tenant: Tenant) -> None:
    """An issuer's text must not control the terminal."""
    intent = {"type": "link", "action": "open", "resource": {"title": "\x1b[2J \x9b31m \u202eevil Grüße [bold]"}}
    (code,) = tenant.make_codes(1, intent=intent, issuer="[red]Radio[/]")
    done = tenant.run("codes", "show", code["xr_id"], "--project", tenant.project_id)
    assert done.status == 0
    assert all(char.isprintable() or char == "\n" for char in done.out)
    assert "Grüße [bold]" in done.out
    assert "[red]Radio[/]" in done.out
    shown = answered(tenant.run("codes", "show", code["xr_id"], "--json"))
    assert shown["intent"] == intent
    assert "\x9b" not in tenant.run("codes", "show", code["xr_id"], "--json").out


def test_one_code_is_revoked_and_revoked_again(tenant: Tenant) -> None:
    (code,) = tenant.make_codes(1)
    for _ in range(2):
        done = tenant.run("codes", "revoke", code["xr_id"])
        assert (done.status, done.out) == (0, f"{code['xr_id']} is revoked\n")


def test_a_code_outside_the_named_project_is_left_alone(tenant: Tenant, tmp_path: Path) -> None:
    (code,) = tenant.make_codes(1)
    body = {"organization_id": tenant.organization_id, "name": "Evening show"}
    answer = tenant.service.client.post("/v1/projects", json=body)
    other = ["--project", answer.raise_for_status().json()["id"]]
    out = tmp_path / "jingle.wav"
    for command in (("revoke",), ("wav", "--out", str(out))):
        done = tenant.run("codes", *command, code["xr_id"], *other, key=OPERATOR_TOKEN)
        assert done.refusal.startswith("code_not_found (404)")
    assert not out.exists()
    own = ["--project", tenant.project_id]
    assert tenant.run("codes", "wav", code["xr_id"], "--out", str(out), *own).out == f"{out}\n"
    assert [frame.text for frame in hear(out)] == [code["broadcast_frame"]]
    assert tenant.run("codes", "revoke", code["xr_id"], *own).out == "1 revoked now, 0 already revoked or expired\n"


def test_several_codes_are_revoked_together(tenant: Tenant) -> None:
    ids = [code["xr_id"] for code in tenant.make_codes(3)]
    project = ["--project", tenant.project_id]
    refused = tenant.run("codes", "revoke", *ids, UNKNOWN, *project)
    assert refused.refusal.startswith("code_not_found (404)")
    assert tenant.answer("/v1/codes", status="revoked")["data"] == []
    done = tenant.run("codes", "revoke", *ids[:2], *project)
    assert done.out == "2 revoked now, 0 already revoked or expired\n"
    counts = answered(tenant.run("codes", "revoke", *ids, *project, "--json"))
    assert counts == {"requested_count": 3, "revoked_count": 1, "unchanged_count": 2}


def test_a_refusal_of_the_service_is_one_line_with_its_code(tenant: Tenant) -> None:
    done = tenant.run("codes", "show", UNKNOWN)
    assert done.refusal.startswith("code_not_found (404): ")
    assert "[request " in done.refusal
    past = tenant.run("codes", "issue", *tenant.issuing[:-2], "--expires-at", "2020-01-01T00:00:00Z")
    assert past.refusal.startswith("validation_failed (422): ")
    assert "body /expires_at" in past.refusal
    assert "--idempotency-key" not in past.refusal
    deep = json.dumps({"type": "t", "action": "a", "resource": {"x": 2**60}})
    options = [*tenant.issuing[:4], "--expires-in", "1h", "--intent", deep]
    assert "JSON" in tenant.run("codes", "issue", *options).err


@pytest.mark.parametrize(
    "arguments",
    [
        ("issue",),
        ("issue", "--expires-in", "1h", "--expires-at", "2099-01-01T00:00:00Z"),
        ("issue", "--expires-in", "1 hour"),
        ("issue", "--expires-at", "tomorrow"),
        ("issue", "--expires-at", "2099-01-01T00:00:00"),
        ("issue", "--expires-in", "1h", "--count", "0"),
        ("issue", "--expires-in", "1h", "--idempotency-key", "short"),
        ("issue", "--expires-in", "1h", "--intent", "{"),
        ("issue", "--expires-in", "1h", "--intent", "{}"),
        ("list", "--limit", "101"),
        ("list", "--status", "gone"),
        ("revoke", "xr_1", "xr_1", "--project", "prj_1"),
        ("wav", "xr_1", "--protocol", "2"),
        ("wav", *(f"xr_{number}" for number in range(101)), "--project", "prj_1"),
    ],
)
def test_wrong_usage_is_status_2_without_a_request(arguments: tuple[str, ...]) -> None:
    intent = () if "--intent" in arguments else ("--intent", json.dumps(INTENT))
    needed = ("--project", "prj_1", "--issuer", "R", *intent) if arguments[0] == "issue" else ()
    done = CliRunner().invoke(codes.app, [*arguments, *needed, "--organization", "org_1"])
    assert (done.exit_code, done.stdout) == (2, "")
    assert "Usage: " in done.stderr
