"""Everything of an organisation goes to its cell, and a cell that is away fails its own organisations alone."""

import asyncio
import json
from dataclasses import dataclass
from typing import Any

import pytest
from structlog.testing import capture_logs
from support.audience.cells import AWAY, Divided
from support.audience.event_delivery import deliver_event, make_event
from support.audience.faults import PROBLEM
from support.database.rival import Rival
from support.outside.misbehaving_server import answer, misbehaving_server
from support.processes.fake_clock import FakeClock
from support.tenancy.archives import export_organization
from support.tenancy.closures import SUBJECTS, organization_of, project_of
from support.tenancy.tenant import Tenant, make_second_project, make_tenant

from soundmark.core.context import Context
from soundmark.core.features.audience.integrations import jobs
from soundmark.core.features.codes.signing_keys import rotation, service
from soundmark.core.features.codes.signing_keys.service import KeyRefused

INTEGRATION_CELLS = "SELECT integration_id, cell FROM integration_cells ORDER BY cell DESC"


@dataclass(frozen=True)
class Measured:
    """A tenant with an integration and a measured Code."""

    tenant: Tenant
    integration: dict[str, Any]
    code: dict[str, Any]

    async def event(self) -> dict[str, Any]:
        return await make_event(self.tenant, self.code)

    async def deliver(self, event: Any = None) -> tuple[int, str]:
        given = await self.event() if event is None else event
        done = await deliver_event(self.tenant.api, given, self.integration["hmac_secret"])
        return done.status, done.json.get("code") or done.json["status"]


@pytest.fixture
async def two(divided: Divided) -> tuple[Measured, Measured]:
    """A tenant in each cell: `main`, then `east`."""
    made = []
    for _ in range(2):
        tenant = await make_tenant(divided.api)
        integration = await tenant.make_integration(name="Studio")
        code = await tenant.make_code(audience={"enabled": True, "integration_id": integration["id"]})
        made.append(Measured(tenant, integration, code))
    return made[0], made[1]


async def test_events_through_core_reach_the_cell_of_their_integration(
    divided: Divided, two: tuple[Measured, Measured], rival: Rival
) -> None:
    event = await two[1].event()
    assert await two[1].deliver(event) == (201, "recorded")
    assert await two[1].deliver(event) == (200, "duplicate")
    assert await divided.counts("events") == {"main": 0, "east": 1}
    assert await two[0].deliver() == (201, "recorded")
    assert await divided.counts("events") == {"main": 1, "east": 1}
    assert await rival.rows(INTEGRATION_CELLS) == [
        (each.integration["id"], cell) for each, cell in zip(two, ("main", "east"), strict=True)
    ]


async def test_an_event_of_no_cell_is_refused_without_calling_one(
    divided: Divided, two: tuple[Measured, Measured]
) -> None:
    """As every cell would refuse it, though all of them are away."""
    event = await two[0].event()
    divided.file.write(main=AWAY, east=AWAY.replace(":9", ":1"))
    for claim in ("int_" + "u" * 22, "int_", 7, None, [], "x" * 200):
        assert await two[0].deliver({**event, "integration_id": claim}) == (401, "unauthenticated")
    for body in (b"[]", b"7", b'{"event_id": "evt_1"}'):
        assert await two[0].deliver(body) == (401, "unauthenticated")
    for body in (b"{", b"", b'{"integration_id": "int_\xff"}', b'{"a": 1, "a": 2}'):
        assert await two[0].deliver(body) == (400, "malformed_json")


async def test_another_cells_secret_and_proof_are_worth_nothing(two: tuple[Measured, Measured]) -> None:
    """A tenant who claims a stranger's integration is judged by the stranger's cell."""
    mine, theirs = two
    event = {**await mine.event(), "integration_id": theirs.integration["id"]}
    assert await mine.deliver(event) == (401, "unauthenticated")
    assert await theirs.deliver(event) == (422, "proof_invalid")


@pytest.mark.parametrize("away", ["main", "east"])
async def test_a_cell_that_is_away_fails_its_own_integrations_only(
    divided: Divided, two: tuple[Measured, Measured], rival: Rival, away: str
) -> None:
    there, gone = two if away == "east" else reversed(two)
    events = [await there.event(), await gone.event()]
    divided.file.write(**{away: AWAY})

    async def ask(measured: Measured, event: dict[str, Any]) -> list[tuple[int, str | None]]:
        it, api = measured.tenant, divided.api
        delivered = await measured.deliver(event)
        answers = [
            await it.api.post("/v1/audience/integrations", json=it.integration_body()),
            await api.get("/v1/audience/integrations", params=it.in_project),
            await api.get(f"/v1/audience/reports/{measured.integration['id']}", params=it.in_project),
            await api.get("/v1/audience/legacy-report", params=it.in_project),
            await it.change_integration("secret", measured.integration["id"]),
            await api.post(
                "/v1/codes",
                json=it.code_body(audience={"enabled": True, "integration_id": measured.integration["id"]}),
            ),
            await api.get(f"/v1/organizations/{it.organization_id}/export"),
        ]
        return [(delivered[0], delivered[1]), *((each.status, each.json.get("code")) for each in answers)]

    assert {status for status, _ in await ask(there, events[0])} <= {200, 201}
    assert set(await ask(gone, events[1])) == {(503, "audience_unavailable")}
    usage = [(await divided.api.get("/v1/usage", params=each.tenant.query)).json for each in (there, gone)]
    assert [each["audience"]["status"] for each in usage] == ["available", "unavailable"]
    assert (await divided.api.resolve(gone.code["broadcast_token"])).status == 200
    await rival.run("UPDATE audit_entries SET outcome = 'failed', finalised_at = now() WHERE outcome = 'requested'")
    refused = await organization_of(gone.tenant).delete()
    assert (refused.status, refused.code) == (503, "audience_unavailable")
    assert (await organization_of(there.tenant).delete()).status == 204
    divided.file.write()
    assert (await organization_of(gone.tenant).delete()).status == 204


async def test_the_log_names_the_cell_that_failed(divided: Divided, two: tuple[Measured, Measured]) -> None:
    divided.file.write(east=AWAY)
    with capture_logs() as log:
        await divided.api.get("/v1/audience/integrations", params=two[1].tenant.in_project)
    failed = [line for line in log if line["event"] == "audience_call_failed"]
    assert [(line["reason"], line["cell"]) for line in failed] == [("unreachable", "east")]


async def test_usage_exports_and_reports_are_of_the_cell(divided: Divided, two: tuple[Measured, Measured]) -> None:
    await two[1].deliver()
    for measured, count in zip(two, (0, 1), strict=True):
        it = measured.tenant
        usage = (await divided.api.get("/v1/usage", params=it.query)).json["audience"]
        assert [(mode["events"], mode["active_integrations"]) for mode in usage["modes"]] == [(count, 1)]
        path = f"/v1/audience/reports/{measured.integration['id']}"
        assert (await divided.api.get(path, params=it.in_project)).json["events"] == count
        archived = (await export_organization(it))["audience_integrations"]
        assert [each["id"] for each in archived] == [measured.integration["id"]]


@pytest.mark.parametrize("kind", SUBJECTS)
async def test_a_deletion_purges_the_cell_of_its_organisation_alone(
    divided: Divided, two: tuple[Measured, Measured], rival: Rival, kind: str
) -> None:
    for measured in two:
        await measured.deliver()
    certificate = await SUBJECTS[kind](two[1].tenant).certificate()
    assert certificate["deleted"]["audience"]["events"] == 1
    assert await divided.counts("events") == {"main": 1, "east": 0}
    assert await divided.counts("purges") == {"main": 0, "east": 1}
    assert await rival.rows(INTEGRATION_CELLS) == [(two[0].integration["id"], "main")]
    assert await two[0].deliver() == (201, "recorded")
    body = {"integration_id": two[1].integration["id"]}
    assert await two[1].deliver(body) == (401, "unauthenticated")


async def test_a_project_that_goes_leaves_the_organisation_its_cell(
    divided: Divided, two: tuple[Measured, Measured], rival: Rival
) -> None:
    second = await make_second_project(two[1].tenant)
    assert (await project_of(two[1].tenant).delete()).status == 204
    await second.make_integration()
    assert await divided.counts("integrations") == {"main": 1, "east": 1}
    assert await rival.rows("SELECT audience_cell FROM organizations ORDER BY 1") == [("east",), ("main",)]


async def test_an_integration_that_audience_refused_has_no_cell(
    divided: Divided, rival: Rival, work: Context, clock: FakeClock
) -> None:
    """Nor one that was never created, once that is known."""
    tenant = await make_tenant(divided.api)
    refusing = answer(json.dumps({"code": "entitlement_required"}).encode(), status="409 No", media_type=PROBLEM)
    async with misbehaving_server(refusing) as server:
        divided.file.write(main=server.url)
        refused = await divided.api.post("/v1/audience/integrations", json=tenant.integration_body())
    assert (refused.status, refused.code) == (409, "entitlement_required")
    assert await rival.rows(INTEGRATION_CELLS) == []
    divided.file.write(main=AWAY)
    lost = await divided.api.post("/v1/audience/integrations", json=tenant.integration_body())
    assert lost.status == 503
    ((integration_id, cell),) = await rival.rows(INTEGRATION_CELLS)
    assert cell == "main"
    assert integration_id.startswith("int_")
    divided.file.write()
    clock.advance(minutes=6)
    assert await jobs.settle_intents(work) == 1
    assert await rival.rows(INTEGRATION_CELLS) == []


async def test_intents_of_a_cell_that_is_away_do_not_delay_those_of_another(
    divided: Divided, two: tuple[Measured, Measured], rival: Rival, work: Context, clock: FakeClock
) -> None:
    """More of them than are tried in a row, and older."""
    for _ in range(4):
        await two[1].tenant.make_integration()
    await two[0].tenant.make_integration()
    await rival.run(
        "UPDATE audit_entries SET outcome = 'requested', finalised_at = NULL WHERE action LIKE 'audience.%%'"
    )
    divided.file.write(east=AWAY)
    clock.advance(seconds=61)
    assert await jobs.settle_intents(work) == 2
    divided.file.write()
    assert await jobs.settle_intents(work) == 5


async def test_an_entitlement_goes_to_the_cell(
    divided: Divided, two: tuple[Measured, Measured], rival: Rival, work: Context
) -> None:
    """An organisation without a cell takes it along with its first integration."""
    fresh = await make_tenant(divided.api)
    for tenant in (two[1].tenant, fresh):
        await tenant.make_entitlement(rival)
        await jobs.project_entitlement(work, organization_id=tenant.organization_id, mode="contract")
    assert await divided.counts("entitlements") == {"main": 0, "east": 1}
    await fresh.make_integration(mode="contract", retention_days=30)
    assert await divided.counts("entitlements") == {"main": 1, "east": 1}


async def test_a_new_signing_key_reaches_every_cell(
    divided: Divided, two: tuple[Measured, Measured], work: Context
) -> None:
    """Before it signs; while a cell is away it does not, and the cells that have it trust the old one meanwhile."""
    staged = (await service.stage(work)).key_id
    divided.file.write(east=AWAY)
    with pytest.raises(KeyRefused, match="Audience does not answer"):
        await rotation.put_in_place(work, staged)
    assert await two[0].deliver() == (201, "recorded")
    divided.file.write()
    told: list[int] = []
    assert await rotation.put_in_place(work, staged, tell=told.append) is True
    assert told == [1, 2]
    for rival in divided.databases.values():
        assert await rival.rows("SELECT core_key_id FROM integrations") == [(staged,)]
    async with asyncio.timeout(60):  # Until Core has read that it signs.
        while (await two[0].event())["proof"]["key_id"] != staged:
            pass
    assert [await each.deliver() for each in two] == [(201, "recorded")] * 2
