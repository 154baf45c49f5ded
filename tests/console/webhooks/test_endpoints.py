"""The pages of webhook endpoints."""

from typing import Any

import pytest
from support.console.client import ConsoleClient, PageAnswer
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock
from support.processes.secret_leaks import remember_secret
from support.tenancy.people import People
from support.tenancy.tenant import Tenant
from support.webhooks.consumer import Reaction, WebhookConsumer

from soundmark.console import core_api
from soundmark.console.event_types import EVENT_TYPES
from soundmark.console.language import LOCALES, get_language
from soundmark.core.domain.webhooks import event
from soundmark.core.features.webhooks.delivery import sending

URL = "https://consumer.example.org/webhooks"
HOSTILE = "</textarea><script>alert(1)</script> \"'&"
NEW = {"url": URL, "description": "", "which": "all", "project_id": ""}


def webhooks_path(tenant: Tenant, endpoint: dict[str, Any] | None = None) -> str:
    path = f"/organizations/{tenant.organization_id}/webhooks"
    return path if endpoint is None else f"{path}/{endpoint['id']}"


async def listed(tenant: Tenant) -> list[dict[str, Any]]:
    answer = await tenant.api.get("/v1/webhook-endpoints", params=tenant.query)
    return list(answer.json["data"])


def shown_secret(page: PageAnswer) -> str:
    secret = page.find(".//input[@id='secret']").get("value") or ""
    remember_secret(secret)
    return secret


def test_the_types_are_those_that_core_sends() -> None:
    assert list(EVENT_TYPES) == sorted(event.EVENT_TYPES)


async def test_the_types_stand_under_their_resource_with_names(operator: ConsoleClient, tenant: Tenant) -> None:
    page = await operator.get(f"{webhooks_path(tenant)}/new")

    groups = page.find_all(".//div[@class='event-group']")
    names = {
        str(group.findtext("p")): [str(each.get("value")) for each in group.findall("label/input")] for group in groups
    }
    assert [types[0].partition(".")[0] for types in names.values()] == sorted(
        {t.partition(".")[0] for t in EVENT_TYPES}
    )
    assert names["Invitations"] == ["invitation.accepted", "invitation.created", "invitation.revoked"]
    for code in LOCALES:
        language = get_language(code)
        for event_type in EVENT_TYPES:
            assert language.knows(f"webhooks.resource.{event_type.partition('.')[0]}"), event_type
            assert any(language.knows(f"{area}.{event_type}") for area in ("webhooks.type", "audit_log.action"))


async def test_an_endpoint_is_created_and_its_secret_shown_once(operator: ConsoleClient, tenant: Tenant) -> None:
    assert "No endpoints yet." in (await operator.get(webhooks_path(tenant))).text

    page = await operator.submit(f"{webhooks_path(tenant)}/new", NEW)

    assert page.status == 200
    secret = shown_secret(page)
    assert secret.startswith("whsec_")
    [endpoint] = await listed(tenant)
    assert (endpoint["url"], endpoint["project_id"], endpoint["event_types"], endpoint["description"]) == (
        *(URL, None, None),
        None,
    )
    for path in (webhooks_path(tenant), webhooks_path(tenant, endpoint)):
        again = await operator.get(path)
        assert URL in again.text
        assert secret not in again.html


async def test_an_endpoint_of_a_project_with_chosen_events(operator: ConsoleClient, tenant: Tenant) -> None:
    shown = await operator.get(f"{webhooks_path(tenant)}/new")
    assert tenant.project_id in [each.get("value") for each in shown.find_all(".//select[@name='project_id']/option")]
    boxes = [each.get("value") for each in shown.find_all(".//input[@name='event_types']")]
    assert boxes == list(EVENT_TYPES)
    chosen = {"which": "chosen", "event_types": ["code.issued", "code.revoked"], "project_id": tenant.project_id}

    shown_secret(await operator.submit(f"{webhooks_path(tenant)}/new", {**NEW, **chosen, "description": "Playout"}))

    [endpoint] = await listed(tenant)
    assert (endpoint["project_id"], endpoint["event_types"], endpoint["description"]) == (
        tenant.project_id,
        ["code.issued", "code.revoked"],
        "Playout",
    )
    assert "2 types" in (await operator.get(webhooks_path(tenant))).text


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"url": "http://consumer.example.org/"}, "url"),
        ({"url": "https://10.0.0.1/"}, "url"),
        ({"url": ""}, "url"),
        ({"description": "d" * 201}, "description"),
        ({"which": "chosen"}, "event_types"),
    ],
)
async def test_a_refused_endpoint_is_shown_again(
    operator: ConsoleClient, tenant: Tenant, changes: dict[str, str], field: str
) -> None:
    fields = {**NEW, "project_id": tenant.project_id, **changes}

    page = await operator.submit(f"{webhooks_path(tenant)}/new", fields)

    assert (page.status, page.trouble) == (422, "validation_failed")
    assert {name: page.value(name) for name in fields} == fields
    assert "refused" in str(page.find(f".//*[@id='field-{field}']/..").get("class")) or page.find_all(
        f".//fieldset[@id='field-{field}']/p[@class='refusal']"
    )
    assert await listed(tenant) == []


async def test_a_project_that_is_gone_does_not_become_all_projects(operator: ConsoleClient, tenant: Tenant) -> None:
    """Whoever sends the form again would make an endpoint for everything."""
    page = await operator.submit(f"{webhooks_path(tenant)}/new", {**NEW, "project_id": f"prj_{'x' * 22}"})

    assert (page.status, page.trouble, page.value("project_id")) == (404, "project_not_found", f"prj_{'x' * 22}")


async def test_what_was_chosen_is_still_chosen_when_core_is_down(operator: ConsoleClient, tenant: Tenant) -> None:
    operator.core.refuse("POST /v1/webhook-endpoints", 503, "database_unavailable")
    fields = {**NEW, "which": "chosen", "event_types": ["code.issued"]}

    page = await operator.submit(f"{webhooks_path(tenant)}/new", fields)

    assert (page.status, page.trouble, page.value("url"), page.value("which")) == (
        *(503, "database_unavailable"),
        *(URL, "chosen"),
    )
    ticked = [each.get("value") for each in page.find_all(".//input[@name='event_types'][@checked]")]
    assert ticked == ["code.issued"]


async def test_an_endpoint_is_changed(operator: ConsoleClient, tenant: Tenant) -> None:
    endpoint = await tenant.make_webhook_endpoint(event_types=["code.issued"], description="Playout")
    shown = await operator.get(webhooks_path(tenant, endpoint))
    assert (shown.value("url"), shown.value("which"), shown.value("description")) == (
        *(endpoint["url"], "chosen"),
        "Playout",
    )
    ticked = [each.get("value") for each in shown.find_all(".//input[@name='event_types'][@checked]")]
    assert ticked == ["code.issued"]

    changes = {"url": f"{URL}/2", "description": "", "which": "all"}
    page = await operator.follow(await operator.submit(webhooks_path(tenant, endpoint), changes))

    assert "The endpoint was changed." in page.text
    [changed] = await listed(tenant)
    assert (changed["url"], changed["description"], changed["event_types"]) == (f"{URL}/2", None, None)


async def test_what_was_not_touched_keeps_another_persons_change(operator: ConsoleClient, tenant: Tenant) -> None:
    """Of two pages that were open at once, the later one must not undo what the earlier one changed."""
    endpoint = await tenant.make_webhook_endpoint(event_types=["code.revoked", "code.issued"], description="Playout")
    path = webhooks_path(tenant, endpoint)
    stale = await operator.get(path)
    names = ("url", "description", "which", "shown_url", "shown_description", "shown_types")
    shown = {name: stale.value(name) for name in names} | {"event_types": ["code.issued", "code.revoked"]}
    await operator.submit(path, {**shown, "url": f"{URL}/2", "event_types": ["code.issued"]})

    page = await operator.follow(await operator.submit(path, {**shown, "description": "Studio"}))
    assert "The endpoint was changed." in page.text
    [changed] = await listed(tenant)
    assert (changed["url"], changed["event_types"], changed["description"]) == (f"{URL}/2", ["code.issued"], "Studio")

    assert "There was nothing to change." in (await operator.follow(await operator.submit(path, shown))).text
    refused = await operator.submit(path, {**shown, "url": "http://10.0.0.1"})
    assert (refused.status, refused.value("shown_url")) == (422, endpoint["url"])


async def test_all_events_and_chosen_events_at_once_are_refused(operator: ConsoleClient, tenant: Tenant) -> None:
    endpoint = await tenant.make_webhook_endpoint(event_types=["code.issued"])
    both = {**NEW, "which": "all", "event_types": ["code.revoked"]}

    for path in (f"{webhooks_path(tenant)}/new", webhooks_path(tenant, endpoint)):
        page = await operator.submit(path, both)

        assert (page.status, page.trouble) == (422, "validation_failed")
        assert "Untick these" in str(page.find(".//fieldset[@id='field-event_types']/p[@class='refusal']").text)
        ticked = [each.get("value") for each in page.find_all(".//input[@name='event_types'][@checked]")]
        assert ticked == ["code.revoked"]
    assert [each["event_types"] for each in await listed(tenant)] == [["code.issued"]]


async def test_an_event_type_of_a_later_core_is_kept(operator: ConsoleClient, tenant: Tenant) -> None:
    endpoint = await tenant.make_webhook_endpoint()
    view = {**endpoint, "event_types": ["code.issued", "code.sung"]}
    view.pop("secret")
    operator.core.answer(f"GET /v1/webhook-endpoints/{endpoint['id']}", 200, view)

    page = await operator.get(webhooks_path(tenant, endpoint))

    ticked = [each.get("value") for each in page.find_all(".//input[@name='event_types'][@checked]")]
    assert ticked == ["code.issued", "code.sung"]


async def test_an_endpoint_is_disabled_and_enabled(operator: ConsoleClient, tenant: Tenant) -> None:
    endpoint = await tenant.make_webhook_endpoint()
    path = webhooks_path(tenant, endpoint)

    off = await operator.follow(await operator.submit(f"{path}/enabled", {"enabled": "false"}))
    assert "The endpoint is disabled." in off.text
    assert [each["enabled"] for each in await listed(tenant)] == [False]

    on = await operator.follow(await operator.submit(f"{path}/enabled", {"enabled": "true"}))
    assert "The endpoint is enabled." in on.text
    assert [each["enabled"] for each in await listed(tenant)] == [True]


@pytest.mark.parametrize(("reason", "words"), [("gone", "it answered 410"), ("failing", "five days of failures")])
async def test_the_page_says_why_the_service_disabled_an_endpoint(
    operator: ConsoleClient, tenant: Tenant, rival: Rival, reason: str, words: str
) -> None:
    endpoint = await tenant.make_webhook_endpoint()
    await rival.run("UPDATE webhook_endpoints SET enabled = false, disabled_reason = %s", reason)

    page = await operator.get(webhooks_path(tenant, endpoint))

    assert words in page.text
    assert "resend the events that it missed" in page.text


async def test_a_new_secret_is_shown_once(operator: ConsoleClient, tenant: Tenant) -> None:
    endpoint = await tenant.make_webhook_endpoint()

    page = await operator.submit(f"{webhooks_path(tenant, endpoint)}/secret")

    assert page.status == 200
    assert shown_secret(page) != endpoint["secret"]
    assert "for 24 hours" in page.text


async def test_a_new_secret_that_cannot_be_made_is_offered_again(operator: ConsoleClient, tenant: Tenant) -> None:
    endpoint = await tenant.make_webhook_endpoint()
    operator.core.lose(f"POST /v1/webhook-endpoints/{endpoint['id']}/secret")

    page = await operator.submit(f"{webhooks_path(tenant, endpoint)}/secret")

    assert (page.status, page.trouble) == (503, "core_unreachable")
    assert page.find(".//main//form").get("action") == f"{webhooks_path(tenant, endpoint)}/secret"


@pytest.mark.parametrize(
    ("reaction", "words"),
    [(204, "accepted the test message"), (500, "The status code was not 2xx."), ("reset", "The connection was lost.")],
)
async def test_a_test_says_what_came_back(
    operator: ConsoleClient, tenant: Tenant, consumer: WebhookConsumer, reaction: Reaction, words: str
) -> None:
    endpoint = await tenant.make_webhook_endpoint(url=consumer.url)
    consumer.otherwise = reaction

    page = await operator.submit(f"{webhooks_path(tenant, endpoint)}/test")

    assert words in page.text
    assert consumer.types == ["webhook.test"]
    if isinstance(reaction, int):
        assert page.find(".//dl/dd").text == str(reaction)


async def test_an_endpoint_that_hangs_is_no_failure_of_core(
    operator: ConsoleClient, tenant: Tenant, consumer: WebhookConsumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The console waits longer for Core than Core waits for the endpoint."""
    assert core_api._TIMEOUT_S > sending.TIMEOUT_S + 2
    monkeypatch.setattr(sending, "TIMEOUT_S", 0.3)
    endpoint = await tenant.make_webhook_endpoint(url=consumer.url)
    consumer.otherwise = "hang"

    page = await operator.submit(f"{webhooks_path(tenant, endpoint)}/test")

    assert (page.status, page.trouble) == (200, None)
    assert "There was no answer within 15 seconds." in page.text


async def test_an_endpoint_is_deleted_after_a_confirmation(operator: ConsoleClient, tenant: Tenant) -> None:
    endpoint = await tenant.make_webhook_endpoint()
    path = f"{webhooks_path(tenant, endpoint)}/delete"
    asked = await operator.get(path)
    assert endpoint["url"] in asked.text
    assert len(await listed(tenant)) == 1

    page = await operator.follow(await operator.submit(path))

    assert "The endpoint was deleted." in page.text
    assert await listed(tenant) == []
    assert (await operator.get(webhooks_path(tenant, endpoint))).trouble == "webhook_endpoint_not_found"


async def test_a_hostile_description_and_project_are_shown_as_text(operator: ConsoleClient, tenant: Tenant) -> None:
    await tenant.api.make_project(tenant.organization_id, HOSTILE)
    endpoint = await tenant.make_webhook_endpoint(description=HOSTILE)

    for path in (webhooks_path(tenant), f"{webhooks_path(tenant)}/new"):
        page = await operator.get(path)
        assert HOSTILE in page.text
        assert not page.find_all(".//body//script")
    page = await operator.get(webhooks_path(tenant, endpoint))
    assert page.value("description") == HOSTILE
    assert not page.find_all(".//body//script")


async def test_endpoints_have_pages(operator: ConsoleClient, tenant: Tenant) -> None:
    """An organisation has 20 at most, which Core answers at once; the page follows its cursor all the same."""
    endpoint = await tenant.make_webhook_endpoint()
    view = {name: value for name, value in endpoint.items() if name != "secret"}
    operator.core.answer("GET /v1/webhook-endpoints", 200, {"data": [view], "next_cursor": "the-next"})

    page = await operator.get(webhooks_path(tenant))

    assert page.find(".//a[@rel='next']").get("href") == f"{webhooks_path(tenant)}?cursor=the-next"


async def test_a_member_is_told_that_the_role_is_not_enough(
    visitors: ConsoleClient, people: People, rival: Rival, clock: FakeClock
) -> None:
    tenant = await people.tenant_of("owner")
    await tenant.make_member(rival, "mo", "member")
    visitors.sign_in_as(people, "mo", clock.now())

    page = await visitors.get(webhooks_path(tenant))
    refused = await visitors.submit(f"{webhooks_path(tenant)}/new", NEW)

    assert (page.status, page.trouble) == (403, "forbidden")
    assert (refused.status, refused.trouble, refused.value("url")) == (403, "forbidden", URL)


async def test_the_pages_in_french(operator: ConsoleClient, tenant: Tenant, clock: FakeClock) -> None:
    endpoint = await tenant.make_webhook_endpoint()
    french = operator.other(language="fr").sign_in_as_operator(clock.now())

    assert "Nouveau point de réception" in (await french.get(f"{webhooks_path(tenant)}/new")).text
    assert "activé" in (await french.get(webhooks_path(tenant, endpoint))).text


async def test_the_search_among_the_events_is_hidden_until_a_script_shows_it_and_is_never_sent(
    operator: ConsoleClient, tenant: Tenant
) -> None:
    endpoint = await tenant.make_webhook_endpoint(event_types=["code.issued"])

    for path in (f"{webhooks_path(tenant)}/new", webhooks_path(tenant, endpoint)):
        page = await operator.get(path)
        search = page.find(".//fieldset[@id='field-event_types']/div[@id='event-search']")
        assert search.get("hidden") is not None
        assert [each.get("name") for each in search.iter("input")] == [None]
        assert len(page.find_all(".//input[@name='event_types']")) == len(EVENT_TYPES)
