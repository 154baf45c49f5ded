"""`soundmark organizations`, `projects` and `members`: a tenant from scratch, at a terminal."""

from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import Service, Tenant, answered, cells, run


def test_from_scratch_to_a_code_without_an_id_in_any_command(service: Service, tmp_path: Path, nowhere: Path) -> None:
    """As at the beginning of the guide to issuing."""
    (nowhere / ".soundmark").mkdir()
    up = nowhere / ".soundmark" / "up.json"
    up.write_text(f'{{"base_url": "{service.url}", "operator_token": "{"xop_" + "o" * 43}"}}')
    up.chmod(0o600)
    key = str(tmp_path / "playout.key")
    assert run("organizations", "create", "Radio Nordlicht", "--use").status == 0
    assert run("projects", "create", "Morning show", "--use").status == 0
    campaign = run("campaigns", "create", "Summer", "--quiet").out.strip()
    made = run("api-keys", "create", "--scope", "codes:read", "--scope", "codes:write", "--secret-file", key)
    assert made.status == 0
    intent = '{"type": "link", "action": "open", "resource": {}}'
    issuing = ("--issuer", "R", "--expires-in", "1h", "--intent", intent, "--campaign", campaign, "--quiet")
    xr_id = run("codes", "issue", "--key-file", key, *issuing).out.strip()
    assert answered(run("codes", "show", xr_id, "--key-file", key, "--json"))["campaign_id"] == campaign


def test_a_namesake_of_a_new_organisation_is_named(tenant: Tenant) -> None:
    assert tenant.run_as_operator("organizations", "create", "Radio Zwilling", "--quiet").err == ""
    first = tenant.run_as_operator("organizations", "list", "--json")
    done = tenant.run_as_operator("organizations", "create", "Radio Zwilling", "--quiet")
    assert done.err == f"another organisation has this name: {answered(first)['data'][0]['id']}\n"
    assert done.out.startswith("org_")


def test_organisations_and_projects_are_listed_and_renamed(tenant: Tenant) -> None:
    as_operator = tenant.run_as_operator
    assert as_operator("use", tenant.organization_id, tenant.project_id).status == 0
    assert answered(as_operator("organizations", "rename", "Radio Südlicht", "--json"))["name"] == "Radio Südlicht"
    assert answered(as_operator("projects", "rename", "Night show", "--json"))["name"] == "Night show"
    assert cells(as_operator("organizations", "list"))[0][:3] == [tenant.organization_id, "Radio Südlicht", "owner"]
    assert cells(as_operator("projects", "list"))[0][:2] == [tenant.project_id, "Night show"]
    second = answered(as_operator("projects", "create", "Second", "--json"))
    assert second["organization_id"] == tenant.organization_id
    page = as_operator("projects", "list", "--limit", "1", "--json")
    assert answered(page)["data"] == [second]
    assert as_operator("projects", "list", "--limit", "1").err.startswith("more: --cursor ")
    taken = as_operator("projects", "create", "Second")
    assert taken.refusal.startswith("project_name_conflict (409)")


def test_the_list_says_since_when_an_organisation_is_suspended(tenant: Tenant) -> None:
    listing = ("organizations", "list")
    assert cells(tenant.run_as_operator(*listing))[0][-1] == ""
    path = f"/v1/platform/organizations/{tenant.organization_id}/suspension"
    suspended_at = tenant.service.client.put(path, json={"reason": "Spam."}).json()["suspended_at"]

    assert cells(tenant.run_as_operator(*listing))[0][-1][:10] == suspended_at[:10]


def test_the_hosts_of_a_projects_links_are_set_and_lifted(tenant: Tenant) -> None:
    in_it = ("--organization", tenant.organization_id, "--project", tenant.project_id)
    as_operator = tenant.run_as_operator
    assert as_operator("projects", "allowed-hosts", *in_it).out == "links may lead to any host\n"
    done = as_operator("projects", "allow-hosts", "Example.org", "*.example.org", *in_it)
    assert done.out == "example.org\n*.example.org\n"
    assert tenant.run_with_key("projects", "allowed-hosts").out == done.out
    assert answered(as_operator("projects", "allowed-hosts", *in_it, "--json"))["hosts"] == [
        "example.org",
        "*.example.org",
    ]
    assert as_operator("projects", "allow-hosts", "--none", *in_it).out == "no host is allowed: no link is issued\n"
    assert answered(as_operator("projects", "allow-hosts", "--any", *in_it, "--json"))["hosts"] is None
    refused = as_operator("projects", "allow-hosts", "example.org", "example.org:443", *in_it)
    assert refused.refusal.startswith("validation_failed (422)")
    assert "/hosts/1" in refused.err
    assert tenant.run_with_key("projects", "allow-hosts", "--any").refusal.startswith("user_token_required (403)")


def test_a_person_is_invited_and_the_invitation_revoked(tenant: Tenant, tmp_path: Path) -> None:
    in_it = ("--organization", tenant.organization_id)
    file = tmp_path / "ada"
    made = tenant.run_as_operator(
        "members", "invite", "ada@example.org", "--role", "admin", "--secret-file", str(file), *in_it, "--quiet"
    )
    assert file.read_text().startswith("xin_")
    listed = cells(tenant.run_as_operator("members", "invitations", *in_it))
    assert listed[0][:4] == [made.out.strip(), "ada@example.org", "admin", "pending"]
    wrong = tenant.run_as_operator("members", "accept-invitation", str(file))
    assert wrong.refusal.startswith("invitation_invalid (400)")
    assert file.read_text().strip() not in wrong.err
    revoked = tenant.run_as_operator("members", "revoke-invitation", made.out.strip(), *in_it)
    assert revoked.out == f"{made.out.strip()} is revoked\n"


def test_members_are_listed_changed_and_removed(tenant: Tenant, past_policies: Callable[..., None]) -> None:
    in_it = ("--organization", tenant.organization_id)
    past_policies(
        "INSERT INTO members (organization_id, subject_id, email, role, created_at)"
        " VALUES (%s, 'ada', 'ada@example.org', 'member', now())",
        tenant.organization_id,
    )
    changed = answered(tenant.run_as_operator("members", "change-role", "ada", "billing", *in_it, "--json"))
    assert (changed["subject_id"], changed["role"]) == ("ada", "billing")
    assert [row[:3] for row in cells(tenant.run_as_operator("members", "list", *in_it))] == [
        ["ada", "ada@example.org", "billing"],
        ["operator", "operator@localhost", "owner"],
    ]
    assert tenant.run_as_operator("members", "remove", "ada", *in_it).out == "ada is no longer a member\n"
    assert tenant.run_as_operator("members", "remove", "operator", *in_it).refusal.startswith("last_owner (409)")


@pytest.mark.parametrize("group", ["organizations", "projects", "members", "api-keys"])
def test_operations_for_people_are_refused_to_a_key(tenant: Tenant, group: str) -> None:
    assert tenant.run_with_key(group, "list").refusal.startswith("user_token_required (403)")


@pytest.mark.parametrize(
    "arguments",
    [
        ("organizations", "create"),
        ("projects", "rename"),
        ("projects", "allow-hosts"),
        ("projects", "allow-hosts", "example.org", "--any"),
        ("projects", "allow-hosts", "--none", "--any"),
        ("members", "change-role", "ada", "king"),
        ("members", "invite", "ada@example.org", "--role", "owner"),
        ("integrations", "create", "--mode", "demo"),
        ("integrations", "create", "--mode", "free", "--retention-days", "7"),
        ("integrations", "set-retention", "int_1", "0"),
    ],
    ids=" ".join,
)
def test_wrong_usage_is_status_2_without_a_request(arguments: tuple[str, ...]) -> None:
    done = run(*arguments, settings={"API_KEY": "xak_" + "k" * 43})
    assert (done.status, done.out) == (2, "")
    assert "Value error" not in done.err
    assert "Input should be" not in done.err
