"""The organisation and project of a command: from an option, then the key's own or the choice of `soundmark use`."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from support.api.core_settings import OPERATOR_TOKEN
from typer.testing import CliRunner

from soundmark.cli import Refused, use
from soundmark.cli.defaults import TenantChoice, find_choice, save_choice

from .conftest import Tenant, answered, run

UNKNOWN = "org_" + "0" * 22


@pytest.fixture
def chosen(tenant: Tenant) -> Tenant:
    """A project that the operator chose."""
    done = tenant.run_as_operator("use", tenant.organization_id, tenant.project_id)
    assert (done.status, done.err) == (0, ""), done
    assert done.out == f"{tenant.organization_id} {tenant.project_id} at {tenant.service.url}\n"
    return tenant


def test_a_server_key_needs_no_ids(tenant: Tenant) -> None:
    code = answered(tenant.run_with_key("codes", "issue", *tenant.issuing[2:], "--json"))
    assert (code["organization_id"], code["project_id"]) == (tenant.organization_id, tenant.project_id)
    assert answered(tenant.run_with_key("codes", "list", "--json"))["data"][0]["xr_id"] == code["xr_id"]
    assert answered(tenant.run_with_key("campaigns", "list", "--json"))["data"] == []
    done = tenant.run_with_key("codes", "revoke", code["xr_id"])
    assert done.out == f"{code['xr_id']} is revoked\n"


def test_a_person_works_in_the_chosen_project(chosen: Tenant, nowhere: Path) -> None:
    campaign = answered(chosen.run_as_operator("campaigns", "create", "Summer", "--json"))
    assert campaign["project_id"] == chosen.project_id
    file = nowhere / "config" / "soundmark" / "defaults.json"
    assert file.stat().st_mode & 0o777 == 0o600
    assert json.loads(file.read_text()) == {
        chosen.service.url: {"organization_id": chosen.organization_id, "project_id": chosen.project_id}
    }
    assert OPERATOR_TOKEN not in file.read_text()


def test_an_option_wins_and_never_mixes_two_organisations(chosen: Tenant) -> None:
    other = answered(chosen.run_as_operator("organizations", "create", "Other", "--json"))["id"]
    assert answered(chosen.run_as_operator("projects", "list", "--organization", other, "--json"))["data"] == []
    done = chosen.run_as_operator("campaigns", "list", "--organization", other)
    assert (done.status, "give --project" in " ".join(done.err.split())) == (2, True)


def test_a_key_uses_its_own_project_whatever_was_chosen(chosen: Tenant) -> None:
    other = chosen.run_as_operator("organizations", "create", "Other", "--use", "--quiet").out.strip()
    assert run("use", settings={"BASE_URL": chosen.service.url}).out.startswith(other)
    assert answered(chosen.run_with_key("codes", "list", "--json"))["data"] == []


def test_a_choice_belongs_to_one_service(chosen: Tenant) -> None:
    """The same service at another address is another service."""
    elsewhere = chosen.service.url.replace("127.0.0.1", "localhost")
    assert run("use", settings={"BASE_URL": elsewhere}).refusal == f"no organisation is chosen for {elsewhere}"
    assert run("use", "--base-url", f"{chosen.service.url}/").status == 0


def test_a_choice_is_shown_and_forgotten(chosen: Tenant) -> None:
    settings = {"BASE_URL": chosen.service.url}
    assert run("use", settings=settings).out.startswith(chosen.organization_id)
    assert run("use", "--forget", settings=settings).status == 0
    assert run("use", settings=settings).status == 1
    done = chosen.run_as_operator("projects", "list")
    assert done.status == 2
    assert "give --organization, or choose one with `soundmark use`" in " ".join(done.err.replace("│", " ").split())


def test_an_unknown_organisation_or_project_is_not_chosen(chosen: Tenant) -> None:
    assert chosen.run_as_operator("use", UNKNOWN).refusal.startswith("organization_not_found (404)")
    wrong = chosen.run_as_operator("use", chosen.organization_id, "prj_" + "0" * 22)
    assert wrong.refusal == f"prj_{'0' * 22} is not a project of this organisation"
    assert run("use", settings={"BASE_URL": chosen.service.url}).out.startswith(chosen.organization_id)


def test_a_deleted_choice_is_named(chosen: Tenant, past_policies: Callable[..., None]) -> None:
    """For example after a `make up` on a new data dir: only the address is the same."""
    past_policies("UPDATE members SET subject_id = 'another'")
    done = chosen.run_as_operator("projects", "list")
    assert done.refusal.startswith("organization_not_found (404)")
    assert done.refusal.endswith("; `soundmark use` chose it")


def test_an_empty_option_is_refused(chosen: Tenant) -> None:
    """It comes from a variable that was not set."""
    assert chosen.run_as_operator("projects", "list", "--organization", "").refusal.startswith("organization_not_found")


@pytest.mark.parametrize("content", ["{", "[]", '{"http://127.0.0.1:8080": {"organization_id": 1}}', "\x00"])
def test_a_file_that_it_did_not_write_is_named(nowhere: Path, content: str) -> None:
    file = nowhere / "config" / "soundmark" / "defaults.json"
    file.parent.mkdir(parents=True)
    file.write_text(content)
    done = CliRunner().invoke(use.app, [])
    assert isinstance(done.exception, Refused)
    assert str(done.exception) == f"{file} was not written by `soundmark use`; remove it"


def test_forgetting_takes_no_organisation() -> None:
    assert CliRunner().invoke(use.app, ["org_1", "--forget"]).exit_code == 2


def test_without_a_home_folder_nothing_was_chosen(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container whose user has no entry among the system's users."""
    monkeypatch.delenv("XDG_CONFIG_HOME")

    def find_none() -> None:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", find_none)
    assert find_choice(tenant.service.url) is None
    with pytest.raises(Refused, match="no home folder"):
        save_choice(tenant.service.url, TenantChoice(tenant.organization_id))
