"""What an archive holds: everything of its subject as of one moment, in the order of the contract, sealed by Core."""

import base64
import hashlib
import inspect
import json
from types import ModuleType
from typing import IO, Any

import pytest
from jsonschema_rs import ValidationError
from support.api.core_client import Api
from support.api.core_settings import core_settings
from support.api.published_contract import make_validator
from support.database.rival import Rival
from support.processes.running_apps import running_core
from support.tenancy.archives import (
    ORGANIZATION_MEMBERS,
    PROJECT_MEMBERS,
    age_of,
    examine,
    export_organization,
    export_project,
    request_organization,
    request_project,
)
from support.tenancy.tenant import Tenant, make_second_project, make_tenant

from soundmark.core.features.codes.signing_keys import service as signing_keys
from soundmark.core.features.tenancy.exports.contents import PAGE_ROWS
from soundmark.core.operator import open_context
from soundmark.core.store.codes import campaigns, code_lists
from soundmark.core.store.tenancy import api_keys, members, projects
from soundmark.kit.crypto.secret import Secret
from soundmark.settings import KeysSettings


async def fill(tenant: Tenant) -> dict[str, list[Any]]:
    """Make some of everything in a project; return the records as their own routes show them, in no order.

    Names of integrations and keys are in no archive: the format is older, and closed.
    """
    campaigns = [await tenant.make_campaign("Tonight"), await tenant.make_campaign("Tomorrow")]
    integration = await tenant.make_integration(name="Studio")
    measured = {"enabled": True, "integration_id": integration["id"]}
    codes = [
        await tenant.make_code(audience=measured, issuer='Radio "Nördlicht" 🎙'),
        await tenant.make_code(campaign_id=campaigns[0]["id"]),
        await tenant.make_code(),
    ]
    await tenant.revoke(codes[1]["xr_id"])
    keys = [await tenant.make_key(scopes=["codes:read"], name="Playout"), await tenant.make_key()]
    return {
        "campaigns": [_without(campaign) for campaign in campaigns],
        "codes": [(await tenant.api.get(f"/v1/codes/{code['xr_id']}", params=tenant.query)).json for code in codes],
        "api_keys": [_without(key, "secret", "name") for key in keys],
        "audience_integrations": [_without(integration, "hmac_secret", "name")],
    }


def _without(record: dict[str, Any], *members: str) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name not in members}


async def read_all(tenant: Tenant, path: str) -> Any:
    """Return a list of the organisation, oldest first."""
    return sorted((await tenant.api.get(path, params=tenant.query)).json["data"], key=age_of)


async def test_a_project_is_archived_as_its_routes_show_it(tenant: Tenant) -> None:
    made = await fill(tenant)
    (project,) = await read_all(tenant, "/v1/projects")

    archive = await export_project(tenant)

    assert list(archive) == PROJECT_MEMBERS
    assert (archive["format"], archive["organization_id"]) == ("svc-project-archive-v1", tenant.organization_id)
    assert archive["project"] == project
    assert {name: archive[name] for name in made} == {name: sorted(made[name], key=age_of) for name in made}
    assert archive["counts"] == {"campaigns": 2, "codes": 3, "api_keys": 2, "audience_integrations": 1}


async def test_an_organisation_is_archived_as_its_routes_show_it(tenant: Tenant, rival: Rival) -> None:
    made = await fill(tenant)
    await tenant.make_member(rival, "somebody", "billing")
    second = await fill(await make_second_project(tenant))
    (organization,) = (await tenant.api.get("/v1/organizations")).json["data"]

    archive = await export_organization(tenant)

    assert list(archive) == ORGANIZATION_MEMBERS
    assert archive["format"] == "svc-organization-archive-v1"
    assert {**archive["organization"], "suspended_at": None} == organization
    assert "suspended_at" not in archive["organization"]
    assert archive["members"] == await read_all(tenant, "/v1/members")
    assert {member["subject_id"] for member in archive["members"]} == {"operator", "somebody"}
    assert archive["projects"] == await read_all(tenant, "/v1/projects")
    both = {name: sorted(made[name] + second[name], key=age_of) for name in made}
    assert {name: archive[name] for name in made} == both


async def test_a_project_archive_leaves_out_everything_else(api: Api, tenant: Tenant) -> None:
    """Of another project of the organisation, and of another organisation."""
    await fill(tenant)
    other = await make_second_project(tenant)
    await fill(await make_tenant(api))

    archive = await export_project(other)

    assert set(archive["counts"].values()) == {0}
    assert tenant.project_id not in json.dumps(archive)


async def test_an_organisation_archive_leaves_out_other_organisations(api: Api, tenant: Tenant) -> None:
    other = await make_tenant(api)
    await fill(other)

    archive = await export_organization(tenant)

    assert [project["id"] for project in archive["projects"]] == [tenant.project_id]
    assert other.organization_id not in json.dumps(archive)


async def test_every_record_of_a_list_has_a_line_of_its_own(tenant: Tenant) -> None:
    """And the rest of the file has one line for each list, so that the archive can be read line by line."""
    await fill(tenant)
    body = (await request_project(tenant)).body
    archive = json.loads(body)

    lines = body.decode().split("\n")

    lists = [archive[name] for name in ("campaigns", "codes", "api_keys", "audience_integrations")]
    records = [record for each in (*lists, archive["verification_keys"]["keys"]) for record in each]
    assert [json.loads(line.removesuffix(",")) for line in lines[1:] if line.startswith("{")] == records
    between = [line for line in lines[1:] if not line.startswith("{")]
    assert between[:-2] == [
        '],"codes":[',
        '],"api_keys":[',
        '],"audience_integrations":[',
        '],"verification_keys":{"keys":[',
    ]
    assert between[-2].startswith(']},"counts":{"campaigns":2,')
    assert between[-1] == "", "the file ends with one newline"
    assert lines[0].endswith(',"campaigns":[')


async def test_an_archive_validates_against_its_published_schema(tenant: Tenant) -> None:
    await fill(tenant)
    for archive in (await export_project(tenant), await export_organization(tenant)):
        schema = (await tenant.api.get(f"/schemas/{archive['format']}.json")).json
        validator = make_validator(schema)
        validator.validate(archive)
        for name in archive:
            with pytest.raises(ValidationError):
                validator.validate({member: value for member, value in archive.items() if member != name})
        with pytest.raises(ValidationError):
            validator.validate({**archive, "more": 1})


async def test_an_empty_project_is_a_whole_archive(tenant: Tenant) -> None:
    """Its only key is the one that sealed it."""
    archive = await export_project(tenant)
    assert archive["counts"] == {"campaigns": 0, "codes": 0, "api_keys": 0, "audience_integrations": 0}
    assert [key["kid"] for key in archive["verification_keys"]["keys"]] == [archive["seal"]["key_id"]]


async def test_the_download_is_a_file_with_its_length_and_digest(
    tenant: Tenant, archive_files: list[IO[bytes]]
) -> None:
    await tenant.make_code()
    for answer, name in (
        (await request_project(tenant), f"{tenant.project_id}.svc-project-archive-v1.json"),
        (await request_organization(tenant), f"{tenant.organization_id}.svc-organization-archive-v1.json"),
    ):
        digest = base64.b64encode(hashlib.sha256(answer.body).digest()).decode()
        assert answer.headers["content-type"] == "application/json"
        assert answer.headers["content-disposition"] == f'attachment; filename="{name}"'
        assert answer.headers["content-length"] == str(len(answer.body))
        assert answer.headers["content-digest"] == f"sha-256=:{digest}:"
        assert answer.headers["cache-control"] == "no-store"
    assert [file.closed for file in archive_files] == [True, True]


async def test_codes_of_every_status_are_archived_as_of_the_export(api: Api, tenant: Tenant) -> None:
    api.clock.freeze()
    codes = [await tenant.make_code(lifetime_s=seconds) for seconds in (60, 3600, 3600)]
    await tenant.revoke(codes[2]["xr_id"])
    api.clock.advance(seconds=60)

    archive = await export_project(tenant)

    by_id = {code["xr_id"]: code["status"] for code in archive["codes"]}
    assert [by_id[code["xr_id"]] for code in codes] == ["expired", "active", "revoked"]
    assert archive["exported_at"] == api.clock.now().isoformat(timespec="milliseconds").replace("+00:00", "Z")


async def test_hundreds_of_codes_are_archived_over_several_pages(tenant: Tenant, rival: Rival) -> None:
    """More than two pages, and a last page that is full, with many Codes of the same time."""
    await tenant.make_quota(rival, 1_000_000)
    issued = []
    for count in (100, 100, 100, 100, 37):
        answer = await tenant.api.post("/v1/codes/batch", json=tenant.code_body(count=count))
        issued += [code["xr_id"] for code in answer.json["data"]]
        archive = await export_project(tenant)
        assert {code["xr_id"] for code in archive["codes"]} == set(issued)
        assert archive["counts"]["codes"] == len(issued)
    assert len(issued) > 2 * PAGE_ROWS


async def test_lists_beyond_one_page_are_whole(tenant: Tenant, rival: Rival) -> None:
    await rival.run(
        "INSERT INTO members SELECT %s, 'member ' || n, 'm' || n || '@example.org', 'member', now()"
        " FROM generate_series(1, %s) n",
        tenant.organization_id,
        2 * PAGE_ROWS,
    )
    archive = await export_organization(tenant)
    assert archive["counts"]["members"] == 2 * PAGE_ROWS + 1


@pytest.mark.parametrize("of", [members, projects, campaigns, api_keys, code_lists], ids=lambda of: of.__name__)
def test_the_order_does_not_depend_on_the_collation_of_the_database(of: ModuleType) -> None:
    """Archives are compared byte by byte. The PostgreSQL of the tests has no other collation, so the text is read."""
    text = inspect.getsource(of)
    assert text.count('COLLATE "C"') == text.count("def list_oldest_first") == 1


async def test_every_key_that_signed_is_in_the_archive(spare_database_url: Secret, measuring_url: str) -> None:
    """Also after rotations. Keys that signed none of these Codes are left out, but for the key of the seal."""
    settings = core_settings(spare_database_url, audience_url=measuring_url)
    signers = []
    async with running_core(settings) as api:
        tenant = await make_tenant(api)
    for has_code in (True, False, True, False):
        async with running_core(settings) as api:
            tenant = Tenant(api, tenant.organization_id, tenant.project_id)
            if has_code:
                signers.append((await tenant.make_code())["signed_code"]["key_id"])
            archive = await export_project(tenant)
            history = (await api.get("/v1/keys/history")).json["keys"]
            expected = {*signers, archive["seal"]["key_id"]}
            assert archive["verification_keys"]["keys"] == [key for key in history if key["kid"] in expected]
        await _rotate(spare_database_url, settings.master_key)
    assert len(set(signers)) == 2


async def _rotate(database_url: Secret, master_key: Secret) -> None:
    given = {"core_database_url": database_url.reveal(), "master_key": master_key.reveal()}
    async with open_context(KeysSettings.model_validate(given), "tests-rotation") as ctx:
        staged = await signing_keys.stage(ctx)
        await signing_keys.activate(ctx, staged.key_id)


async def test_an_archive_verifies_while_its_organisation_is_being_deleted(tenant: Tenant, rival: Rival) -> None:
    await tenant.make_code()
    await rival.run("UPDATE organizations SET deletion_requested_at = now()")
    await rival.run("UPDATE projects SET deletion_requested_at = now()")

    archive = examine(await request_organization(tenant))

    assert archive["organization"]["deletion_requested_at"] is not None
    assert (await export_project(tenant))["project"]["deletion_requested_at"] is not None


async def test_a_head_request_describes_the_download(tenant: Tenant, archive_files: list[IO[bytes]]) -> None:
    answer = await tenant.api.call("HEAD", f"/v1/projects/{tenant.project_id}/export", params=tenant.query)
    assert (answer.status, answer.body) == (200, b"")
    assert int(answer.headers["content-length"]) > 0
    assert [file.closed for file in archive_files] == [True]
