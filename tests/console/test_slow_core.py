"""A Core that takes connections and does not answer in time: a page says so and keeps what was typed."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
from support.api.core_settings import OPERATOR_TOKEN
from support.console.client import ConsoleClient
from support.console.faulty_core import FaultyCore
from support.console.search_pages import search_path
from support.outside import misbehaving_server
from support.outside.misbehaving_server import Behaviour
from support.processes.fake_clock import FakeClock
from support.processes.running_apps import running_lifespan
from support.tenancy.tenant import Tenant

from soundmark.console import core_api, parts
from soundmark.console.app import assemble_app, make_console
from soundmark.console.sign_in import oidc_provider

from .conftest import console_settings

CHECKOUT = "bco_" + "0" * 22


@pytest.fixture(params=["silent", "slow_headers", "dripping", "endless"])
async def waiting(
    request: pytest.FixtureRequest, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[ConsoleClient]:
    """The operator's browser at a console whose Core behaves like that."""
    monkeypatch.setattr(core_api, "_TIMEOUT_S", 0.3)
    behave: Behaviour = getattr(misbehaving_server, request.param)
    async with misbehaving_server.misbehaving_server(behave) as slow:
        settings = console_settings(core_url=slow.url, operator_token=OPERATOR_TOKEN)
        core = FaultyCore(httpx2.AsyncHTTPTransport(trust_env=False))
        console = make_console(settings, clock, core)
        app = assemble_app(console)
        async with running_lifespan(app):
            yield ConsoleClient(app, console, core).sign_in_as_operator(clock.now())


async def test_a_slow_core_is_a_page_that_keeps_what_was_typed(waiting: ConsoleClient) -> None:
    async with asyncio.timeout(10):
        page = await waiting.submit("/organizations", {"name": "Radio Nordlicht"})

    assert page.status == 503
    assert page.trouble in {"core_unreachable", "core_unreadable"}
    assert "Radio Nordlicht" in [each.get("value") for each in page.find_all(".//input")]
    sent = [call for call in waiting.core.calls if call.method == "POST"]
    assert len(sent) == 1, "what may have happened is not done again by itself"


async def test_a_slow_core_is_a_page_for_a_reader(waiting: ConsoleClient) -> None:
    async with asyncio.timeout(10):
        page = await waiting.get("/organizations")

    assert page.status == 503
    assert page.trouble in {"core_unreachable", "core_unreadable"}


@pytest.mark.parametrize("waiting", ["silent", "slow_headers", "dripping"], indirect=True)
async def test_nothing_follows_a_call_that_took_all_the_time(waiting: ConsoleClient) -> None:
    """Neither the call again nor those for the page around the form, which would take as long."""
    read = await waiting.get("/organizations")
    assert (read.trouble, [call.method for call in waiting.core.calls]) == ("core_unreachable", ["GET"])
    waiting.core.calls.clear()

    sent = await waiting.submit("/organizations", {"name": "Radio Nordlicht"})
    assert (sent.trouble, [call.method for call in waiting.core.calls]) == ("core_unreachable", ["POST"])
    assert sent.value("name") == "Radio Nordlicht"


def test_a_page_is_there_before_nginx_gives_it_up() -> None:
    """nginx waits 60 s, and a token of the session may be renewed before the calls."""
    assert core_api._TIMEOUT_S + 2 * oidc_provider._TIMEOUT_S < 60


async def test_a_download_and_a_deletion_may_take_longer_than_a_page(
    operator: ConsoleClient, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    organization = f"/organizations/{tenant.organization_id}"
    project = f"{organization}/projects/{tenant.project_id}"
    shown = await operator.get(f"{project}/delete")  # The names of both are known from now on.
    confirmed = {"confirmation": tenant.project_id, "certificate_id": shown.value("certificate_id")}
    monkeypatch.setattr(core_api, "_TIMEOUT_S", 1e-6)

    assert (await operator.get(f"{organization}/audit-log")).trouble == "core_unreachable"
    assert (await operator.get(f"{organization}/audit-log/download?format=csv")).status == 200
    assert (await operator.submit(f"{project}/delete", confirmed)).status == 303


async def test_a_part_that_is_late_is_left_out_and_said_to_be(
    operator: ConsoleClient, tenant: Tenant, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    """A page waits for its parts less long than for what it is about."""
    organization = f"/organizations/{tenant.organization_id}"
    project = f"{organization}/projects/{tenant.project_id}"
    campaign = await tenant.make_campaign("Summer")
    code = await tenant.make_code(campaign_id=campaign["id"])
    endpoint = await tenant.make_webhook_endpoint()
    part = "This part cannot be shown at the moment."
    choices = "Some choices cannot be shown at the moment."
    packs = "The offline packs could not be looked up."
    late = {
        organization: (
            [*("codes", "projects", "webhook-endpoints", "api-keys", "member-invitations"), "billing/subscriptions"],
            [part] * 2 + ["Some of this could not be checked"],
        ),
        project: (["codes", "campaigns", "audience/integrations", "audit-log"], [part] * 4),
        f"{project}/campaigns/{campaign['id']}": (["codes", "audit-log"], [part, packs]),
        f"{project}/campaigns/{campaign['id']}/stop": (["audit-log"], [packs, "1 active Code will be revoked."]),
        f"{project}/codes": (["campaigns"], [campaign["id"], choices]),
        f"{project}/codes/issue": (
            ["campaigns", "audience/integrations", "codes"],
            [choices] * 2,
        ),
        f"{project}/codes/{code['xr_id']}": (["keys/history", "campaigns"], [campaign["id"]]),
        f"{project}/integrations": (["billing/subscriptions", "audience/legacy-report"], ["Create an integration"]),
        f"{organization}/members": (["member-invitations"], ["Member since", part]),
        f"{organization}/billing": (["usage", "billing/checkouts"], ["Subscriptions", part]),
        f"{organization}/webhooks/{endpoint['id']}": ([f"webhook-endpoints/{endpoint['id']}/deliveries"], [part]),
        search_path(tenant, "api"): (
            ["campaigns", "codes", "member-invitations"],
            ["API keys", "Not every list was looked through."],
        ),
        "/platform/status": (
            ["platform/abuse-reports", "platform/organizations", "billing/admin/catalog"],
            ["Core is ready.", "not known", "not known", "not known"],
        ),
    }
    assert parts._LATE_S < core_api._TIMEOUT_S / 5
    for path in late:
        await operator.get(path)  # The names of the tenant are known from now on.
    monkeypatch.setattr(parts, "_LATE_S", 0.5)  # On a busy machine, the other parts take a tenth of a second.
    for path, (calls, said) in late.items():
        for call in calls:
            operator.core.stall(f"GET /v1/{call}")
        with subtests.test(path=path):
            async with asyncio.timeout(5):
                page = await operator.get(path)
            assert page.status == 200
            assert [text for text in said if page.text.count(text) < said.count(text)] == [], page.text
        operator.core.recover()


async def test_choices_that_were_read_before_a_list_was_late_are_offered(
    operator: ConsoleClient, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = await tenant.make_campaign("Summer")

    def stall_the_next(page: dict[str, Any]) -> dict[str, Any]:
        operator.core.recover()
        operator.core.stall("GET /v1/campaigns")
        return {**page, "next_cursor": "more"}

    operator.core.alter("GET /v1/campaigns", stall_the_next)
    monkeypatch.setattr(parts, "_LATE_S", 1.0)

    page = await operator.get(f"/organizations/{tenant.organization_id}/projects/{tenant.project_id}/codes/issue")

    operator.core.recover()
    assert campaign["id"] in [each.get("value") for each in page.find_all(".//select[@name='campaign_id']/option")]


@pytest.mark.parametrize(
    ("call", "path"),
    [
        (f"GET /v1/billing/checkouts/{CHECKOUT}", f"/billing/checkouts/{CHECKOUT}"),
        ("GET /v1/support/tickets/tkt_1", "{tenant}/tickets/tkt_1"),
        ("POST /v1/support/tickets/tkt_1/messages", "{tenant}/tickets/tkt_1"),
        ("GET /v1/platform/jobs", "/platform/jobs"),
        ("POST /v1/platform/jobs/7/retry", "/platform/jobs/7/retry"),
        ("POST /v1/platform/systems/accounting/test", "/platform/systems/accounting/test"),
    ],
)
async def test_a_call_that_nobody_answers_is_said_and_made_once(
    operator: ConsoleClient, tenant: Tenant, monkeypatch: pytest.MonkeyPatch, call: str, path: str
) -> None:
    path = path.format(tenant=f"/organizations/{tenant.organization_id}")
    await operator.get(f"/organizations/{tenant.organization_id}")  # The names of the tenant are known from now on.
    operator.core.calls.clear()
    monkeypatch.setattr(core_api, "_TIMEOUT_S", 0.3)
    operator.core.stall(call)
    fields = {"message": "It is on.", "request_id": "supreq_" + "0" * 22}

    async with asyncio.timeout(10):
        page = await (operator.get(path) if call.startswith("GET") else operator.submit(path, fields))

    operator.core.recover()
    assert (page.status, page.trouble) == (503, "core_unreachable")
    assert [f"{each.method} {each.url.path}" for each in operator.core.calls].count(call) == 1
    if call.endswith("/messages"):
        assert page.value("message") == "It is on."
