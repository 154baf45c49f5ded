"""Whose reports a caller can read."""

from datetime import datetime, timedelta

import pytest
from support.audience.client import ORGANIZATION, AudienceApi, AudienceIntegration
from support.audience.recorded_events import (
    read_report,
    store_events,
)
from support.audience.report_events import make_event, refused

from soundmark.kit.crypto.secret import Secret
from soundmark.kit.text.timestamps import format_timestamp


async def test_a_revoked_integration_stays_reportable(
    integration: AudienceIntegration, audience_url: Secret, now: datetime
) -> None:
    store_events(audience_url, integration.id, [make_event(now - timedelta(hours=1))])
    assert (await integration.change("revoke")).status == 200

    assert (await read_report(integration)).json["events"] == 1


@pytest.mark.parametrize(
    "query", [{"organization_id": "org_" + "x" * 22}, {"project_id": "prj_" + "x" * 22}], ids=["tenant", "project"]
)
async def test_another_tenant_or_project_does_not_find_the_integration(
    integration: AudienceIntegration, query: dict[str, str]
) -> None:
    assert refused(await read_report(integration, **query)) == (404, "integration_not_found")


async def test_the_administration_may_leave_out_organisation_and_project(
    integration: AudienceIntegration, audience_url: Secret, now: datetime
) -> None:
    store_events(audience_url, integration.id, [make_event(now - timedelta(hours=1), 7)])
    bounds = {"to": format_timestamp(now)}

    answer = await integration.api.call("GET", f"/v1/reports/{integration.id}", params=bounds)

    assert (answer.status, answer.json) == (200, (await read_report(integration, **bounds)).json)
    assert answer.json["events"] == 1
    for params, missing in (
        ({"organization_id": ORGANIZATION}, "/project_id"),
        ({"project_id": integration.query["project_id"]}, "/organization_id"),
    ):
        half = await integration.api.call("GET", f"/v1/reports/{integration.id}", params=params)
        assert (half.status, half.json["errors"][0]["pointer"]) == (422, missing)


async def test_an_unknown_integration_has_no_report(audience: AudienceApi, integration: AudienceIntegration) -> None:
    for name in ("int_" + "x" * 22, "int_%00", "int_short", "%C3%A4"):
        for params in (integration.query, {}):
            unknown = await audience.call("GET", f"/v1/reports/{name}", params=params)
            assert refused(unknown) == (404, "integration_not_found"), name


async def test_integrations_do_not_mix(audience: AudienceApi, audience_url: Secret, now: datetime) -> None:
    """The same tokens, Codes and days, of one tenant and of two."""
    at = now - timedelta(hours=1)
    mine = await audience.make_integration()
    beside = await audience.make_integration()
    foreign = await audience.make_integration(organization_id="org_" + "f" * 22)
    for place, one in enumerate((mine, beside, foreign)):
        store_events(audience_url, one.id, [make_event(at, token) for token in range(place + 1)])

    reports = [(await read_report(one)).json["events"] for one in (mine, beside, foreign)]

    assert reports == [1, 2, 3]
    assert foreign.view["organization_id"] != mine.view["organization_id"] == ORGANIZATION


async def test_nobody_else_reads_a_report(audience: AudienceApi, integration: AudienceIntegration) -> None:
    """It is Audience's own administration route, for the holder of its credential."""
    for credential in (None, "audience-credential-of-others", integration.hmac_secret):
        stranger = AudienceApi(audience.app, audience.clock, credential)
        answer = await stranger.call("GET", f"/v1/reports/{integration.id}", params=integration.query)
        assert refused(answer) == (401, "unauthenticated")
