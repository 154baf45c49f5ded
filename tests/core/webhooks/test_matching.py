"""Which events an endpoint matches, judged in SQL for many and in Python for one, always alike."""

from typing import Final

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.database.rival import Rival
from support.tenancy.tenant import Tenant

from soundmark.core.context import Context
from soundmark.core.domain.webhooks.endpoint import Endpoint
from soundmark.core.features.webhooks.fan_out.service import fan_out

TYPES: Final = ["campaign.created", "code.issued", "project.updated"]
KIND = st.tuples(st.sampled_from(["prj_a", "prj_b", None]), st.sampled_from(TYPES))
LISTENING = st.tuples(
    st.sampled_from(["prj_a", "prj_b", None]),
    st.none() | st.lists(st.sampled_from(TYPES), min_size=1, unique=True),
    st.booleans(),
)


async def insert_case(
    rival: Rival, tenant: Tenant, endpoints: list[Endpoint], acts: list[tuple[str | None, str]]
) -> None:
    for table in ("webhook_endpoints", "webhook_acts", "webhook_events", "webhook_deliveries"):
        await rival.run(f"DELETE FROM {table}")
    for endpoint in endpoints:
        await rival.run(
            "INSERT INTO webhook_endpoints (organization_id, id, project_id, url, event_types, enabled, sealed_secret,"
            " created_at) VALUES (%s, %s, %s, '', %s, %s, '', now())",
            *(tenant.organization_id, endpoint.id, endpoint.project_id),
            *(endpoint.event_types, endpoint.enabled),
        )
    for number, (project_id, event_type) in enumerate(acts):
        await rival.run(
            "INSERT INTO webhook_acts (organization_id, id, project_id, type, actor_type, actor_id, data, endpoint_ids,"
            " created_at) VALUES (%s, %s, %s, %s, 'system', 'soundmark', '{}', %s, now())",
            *(tenant.organization_id, f"act_{number}", project_id, event_type),
            [endpoint.id for endpoint in endpoints],
        )


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(LISTENING, max_size=4), st.lists(KIND, min_size=1, max_size=4))
async def test_an_event_goes_to_the_enabled_endpoints_that_match_it(
    tenant: Tenant,
    rival: Rival,
    ctx: Context,
    listening: list[tuple[str | None, list[str] | None, bool]],
    acts: list[tuple[str | None, str]],
) -> None:
    now = ctx.clock.now()
    for project_id in ("prj_a", "prj_b"):
        await rival.run(
            "INSERT INTO projects (organization_id, id, name, created_at) VALUES (%s, %s, %s, now())"
            " ON CONFLICT DO NOTHING",
            *(tenant.organization_id, project_id, project_id),
        )
    endpoints = [
        Endpoint(tenant.organization_id, f"whe_{number}", project_id, "", types, None, enabled, None, now)
        for number, (project_id, types, enabled) in enumerate(listening)
    ]
    await insert_case(rival, tenant, endpoints, acts)

    await fan_out(ctx)

    rows = await rival.rows(
        "SELECT d.endpoint_id, e.project_id, e.type"
        " FROM webhook_deliveries d JOIN webhook_events e ON e.id = d.event_id"
    )
    expected = [
        (endpoint.id, project_id, event_type)
        for endpoint in endpoints
        for project_id, event_type in acts
        if endpoint.enabled and endpoint.matches(event_type, project_id)
    ]
    assert sorted(map(str, rows)) == sorted(map(str, expected))
    assert len(await rival.rows("SELECT FROM webhook_events")) == len(acts)
