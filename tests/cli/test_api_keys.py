"""`soundmark api-keys`: create, list, rotate and revoke a key; its secret goes only where the user wants it."""

from pathlib import Path

import pytest

from .conftest import Tenant, answered, cells, run

SCOPES = ("--scope", "codes:read", "--scope", "codes:write")


@pytest.fixture
def chosen(tenant: Tenant) -> Tenant:
    """A tenant that later commands use by default."""
    assert tenant.run_as_operator("use", tenant.organization_id, tenant.project_id).status == 0
    return tenant


def test_a_key_is_made_and_its_secret_printed_once(chosen: Tenant) -> None:
    done = chosen.run_as_operator("api-keys", "create", *SCOPES, "--expires-in-days", "7")
    assert (done.status, done.err) == (0, "")
    secret = done.out.splitlines()[-1].removeprefix("secret, shown only once: ")
    assert run("codes", "list", settings={"BASE_URL": chosen.service.url, "API_KEY": secret}).status == 0
    listed = chosen.run_as_operator("api-keys", "list", "--json")
    assert [row["scopes"] for row in answered(listed)["data"]] == [["codes:read", "codes:write"]] * 2
    assert secret not in listed.out


def test_a_secret_is_written_to_a_file_of_its_owner_alone(chosen: Tenant, tmp_path: Path) -> None:
    file = tmp_path / "playout.key"
    made = answered(chosen.run_as_operator("api-keys", "create", *SCOPES, "--secret-file", str(file), "--json"))
    assert "secret" not in made
    assert file.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["playout.key"]
    listing = ("codes", "list", "--key-file", str(file), "--json")
    assert answered(run(*listing, settings={"BASE_URL": chosen.service.url}))["data"] == []


def test_only_the_id_is_printed_on_request(chosen: Tenant, tmp_path: Path) -> None:
    create = ("api-keys", "create", *SCOPES, "--quiet")
    lost = chosen.run_as_operator(*create)
    assert (lost.status, lost.out) == (2, "")
    done = chosen.run_as_operator(*create, "--secret-file", str(tmp_path / "key"))
    assert (done.out.startswith("key_"), done.out.count("\n"), done.err) == (True, 1, "")


def test_an_existing_file_is_replaced_only_by_force(chosen: Tenant, tmp_path: Path) -> None:
    """Checked before the request: a secret that is created and then lost is useless."""
    file = tmp_path / "key"
    file.write_text("the one before")
    create = ("api-keys", "create", *SCOPES, "--secret-file", str(file))
    assert chosen.run_as_operator(*create).refusal == f"{file} already exists; --force overwrites it"
    nowhere = chosen.run_as_operator(*create[:-1], str(tmp_path / "none" / "key"))
    assert nowhere.refusal.endswith(f"cannot be written: there is no folder {tmp_path / 'none'}")
    assert len(answered(chosen.run_as_operator("api-keys", "list", "--json"))["data"]) == 1
    assert chosen.run_as_operator(*create, "--force").status == 0
    assert file.read_text().startswith("xak_")
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_refusal_leaves_no_file(chosen: Tenant, tmp_path: Path) -> None:
    create = ("api-keys", "create", *SCOPES, "--secret-file", str(tmp_path / "key"))
    assert chosen.run_with_key(*create).refusal.startswith("user_token_required (403)")
    assert list(tmp_path.iterdir()) == []


def test_a_secret_is_rotated_and_the_key_revoked(chosen: Tenant, tmp_path: Path) -> None:
    file = tmp_path / "key\x1b[2J"  # A file's name must not control the terminal either.
    made = chosen.run_as_operator("api-keys", "create", *SCOPES, "--secret-file", str(file), "--quiet")
    key_id, first = made.out.strip(), file.read_text()
    rotated = chosen.run_as_operator("api-keys", "rotate-secret", key_id, "--secret-file", str(file), "--force")
    assert (rotated.status, "\x1b" in rotated.out) == (0, False)
    assert file.read_text() not in {first, ""}
    old = run("codes", "list", settings={"BASE_URL": chosen.service.url, "API_KEY": first.strip()})
    assert old.refusal.startswith("unauthenticated (401)")
    for _ in range(2):
        assert chosen.run_as_operator("api-keys", "revoke", key_id).out == f"{key_id} is revoked\n"
    statuses = [row["status"] for row in answered(chosen.run_as_operator("api-keys", "list", "--json"))["data"]]
    assert statuses == ["revoked", "active"]


def test_wrong_usage_is_status_2() -> None:
    assert run("api-keys", "create").status == 2
    wrong = run("api-keys", "create", "--scope", "codes:all")
    assert (wrong.status, "Value error" in wrong.err) == (2, False)
    assert run("api-keys", "create", *SCOPES, "--expires-in-days", "366").status == 2


def test_a_key_is_named_renamed_and_loses_its_name(chosen: Tenant, tmp_path: Path) -> None:
    create = ("api-keys", "create", *SCOPES, "--name", "Playout", "--quiet", "--secret-file", str(tmp_path / "key"))
    key_id = chosen.run_as_operator(*create).out.strip()
    assert cells(chosen.run_as_operator("api-keys", "list"))[0][:2] == [key_id, "Playout"]
    assert cells(chosen.run_as_operator("api-keys", "rename", key_id, "Studio"))[0][:2] == [key_id, "Studio"]
    unnamed = answered(chosen.run_as_operator("api-keys", "rename", key_id, "--no-name", "--json"))
    assert (unnamed["id"], unnamed["name"]) == (key_id, None)


@pytest.mark.parametrize("options", [(), ("Studio", "--no-name")])
def test_a_rename_gives_or_removes_a_name(chosen: Tenant, options: tuple[str, ...]) -> None:
    done = chosen.run_as_operator("api-keys", "rename", "key_" + "A" * 22, *options)
    assert (done.status, "give either NAME or --no-name" in done.err) == (2, True)
