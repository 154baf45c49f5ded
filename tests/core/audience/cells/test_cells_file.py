"""The file of cells: read at start and when it changes; a cell that is in use cannot be left out."""

from typing import Any

from structlog.testing import capture_logs
from support.api.core_client import Answer
from support.api.core_settings import core_settings
from support.audience.cells import AWAY, CellsFile, Divided
from support.audience.event_delivery import deliver_event
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock
from support.processes.running_apps import running_core
from support.tenancy.tenant import Tenant, make_tenant

from soundmark.core.context import Context
from soundmark.core.features.platform.cells.service import name_cell
from soundmark.core.steps.cells import CellsInUse
from soundmark.kit.crypto.secret import Secret


async def list_integrations(tenant: Tenant) -> Answer:
    return await tenant.api.get("/v1/audience/integrations", params=tenant.in_project)


async def test_a_change_of_the_file_counts_without_a_restart(divided: Divided) -> None:
    tenant = await make_tenant(divided.api)
    await tenant.make_integration()
    divided.file.write(main=AWAY)
    assert (await list_integrations(tenant)).status == 503
    divided.file.write([{**each, "credential": "another-credential"} for each in divided.file.cells()])
    assert (await list_integrations(tenant)).status == 503
    divided.file.write()
    assert (await list_integrations(tenant)).status == 200


async def test_while_the_file_cannot_be_read_the_last_good_one_holds(divided: Divided) -> None:
    """With one line in the log for each version, and readiness as it was."""
    tenant = await make_tenant(divided.api)
    await tenant.make_integration()
    lines = []
    for bad in ("{", "[]", '[{"name": "main"}]', None):
        with capture_logs() as log:
            if bad is None:
                divided.file.path.unlink()
                divided.file.look_again()
            else:
                divided.file.write(bad)
            for _ in range(3):
                assert (await list_integrations(tenant)).status == 200
                divided.file.look_again()
        lines.append([line["detail"] for line in log if line["event"] == "cells_not_read"])
    assert [len(each) for each in lines] == [1, 1, 1, 1]
    assert lines[3] == ["cannot be read: No such file or directory"]
    ready = await divided.api.get("/readyz")
    assert (ready.status, ready.json["unavailable"]) == (200, [])
    divided.file.write(main=AWAY)
    assert (await list_integrations(tenant)).status == 503


async def test_core_is_not_ready_without_a_cell_that_is_in_use(divided: Divided, work: Context, rival: Rival) -> None:
    """Nor without one that the operator named; what is in it is unavailable, and the rest works."""
    main, east, named = [await make_tenant(divided.api) for _ in range(3)]
    await main.make_integration()
    await east.make_integration()
    divided.file.write([each for each in divided.file.cells() if each["name"] == "main"])
    not_ready = await divided.api.get("/readyz")
    assert (not_ready.status, not_ready.json["unavailable"]) == (503, ["cells"])
    assert [(await list_integrations(each)).status for each in (main, east)] == [200, 503]
    usage = (await divided.api.get("/v1/usage", params=east.query)).json
    assert usage["audience"]["status"] == "unavailable"
    divided.file.write()
    in_use = CellsInUse(work)
    assert await in_use.are_listed()
    await rival.run("UPDATE organizations SET audience_cell = NULL WHERE audience_cell = 'east'")
    divided.file.write([each for each in divided.file.cells() if each["name"] == "main"])
    assert await in_use.are_listed()
    await rival.run("UPDATE organizations SET preferred_audience_cell = 'west' WHERE id = %s", named.organization_id)
    with capture_logs() as log:
        assert not await in_use.are_listed()
        assert not await in_use.are_listed()
    assert [line["cells"] for line in log if line["event"] == "cells_missing"] == [["west"]]
    refused = await named.api.post("/v1/audience/integrations", json=named.integration_body())
    assert (refused.status, refused.code) == (503, "audience_unavailable")
    await name_cell(work, named.organization_id, "main")
    assert await in_use.are_listed()


async def test_what_was_made_without_a_file_is_in_main(
    divided: Divided, database_url: Secret, measuring_url: str, clock: FakeClock
) -> None:
    """A Core that has lost its file is not ready while another cell holds data."""
    settings = core_settings(database_url, audience_url=measuring_url)
    async with running_core(settings, clock) as before:
        tenant = await make_tenant(before)
        made = await tenant.make_integration()
        assert (await before.get("/readyz")).status == 200
    later = Tenant(divided.api, tenant.organization_id, tenant.project_id)
    assert [each["id"] for each in (await list_integrations(later)).json["data"]] == [made["id"]]
    await (await make_tenant(divided.api)).make_integration()
    async with running_core(settings, clock) as after:
        assert (await after.get("/readyz")).json["unavailable"] == ["cells"]


async def test_readiness_shows_that_a_cell_is_down_and_does_not_count_it(divided: Divided) -> None:
    divided.file.write(east=AWAY)
    shown = await divided.api.get("/readyz")
    assert (shown.status, shown.json["degraded"]) == (200, ["audience"])


async def test_refused_events_of_no_cell_count_against_their_sender(
    database_url: Secret, settings: dict[str, Any], cells_file: CellsFile, clock: FakeClock
) -> None:
    assert cells_file.path.exists(), "the settings name it"
    limited = core_settings(database_url, **settings, refusal_rate_limit="2")
    async with running_core(limited, clock) as core:
        answers = [await deliver_event(core, {"integration_id": "int_" + "u" * 22}, "secret") for _ in range(3)]
    assert [each.status for each in answers] == [401, 401, 429]
