"""The pages of Audience integrations."""

import asyncio
from datetime import timedelta

import pytest
from support.audience.recorded_events import RecordedEvent, store_events, store_integrity_days
from support.console.client import ConsoleClient
from support.console.faults import audience_failing
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock
from support.processes.secret_leaks import remember_secret
from support.tenancy.people import People
from support.tenancy.tenant import Tenant

from soundmark.kit.crypto.secret import Secret


def path_of(tenant: Tenant, *parts: str) -> str:
    path = f"/organizations/{tenant.organization_id}/projects/{tenant.project_id}/integrations"
    return "/".join([path, *parts])


async def test_the_secret_of_a_new_integration_is_shown_once(operator: ConsoleClient, tenant: Tenant) -> None:
    created = await operator.submit(path_of(tenant), {"mode": "demo", "retention_days": "7"})

    assert created.status == 201
    assert created.headers["cache-control"] == "no-store"
    field = created.find(".//input[@id='secret']")
    secret = str(field.get("value"))
    remember_secret(secret)
    assert secret.startswith("xhm_")
    assert field.get("data-copy") is not None, "a script adds the button that copies it"

    shown = await operator.get(path_of(tenant))
    (link,) = shown.find_all(".//tbody/tr/th//a")
    one = await operator.get(str(link.get("href")))
    assert "Demo" in one.text
    assert "7 days" in one.text
    for page in (shown, one, await operator.get(f"{link.get('href')}/secret")):
        assert secret not in page.html


async def test_an_integration_has_a_name_that_is_changed_and_removed(operator: ConsoleClient, tenant: Tenant) -> None:
    created = await operator.submit(path_of(tenant), {"mode": "demo", "retention_days": "7", "name": "Radio app"})
    remember_secret(str(created.find(".//input[@id='secret']").get("value")))
    listed = await operator.get(path_of(tenant))
    link = listed.find(".//tbody/tr/th/a")
    assert link.text == "Radio app"
    assert listed.find(".//tbody//td/a").get("aria-label") == "Report of Radio app"
    at = f"{link.get('href')}/name"
    assert (await operator.get(at)).value("name") == "Radio app"

    for typed, title in (("Web player", "Web player"), ("", "Integration")):
        answer = await operator.submit(at, {"name": typed})
        assert (await operator.follow(answer)).find(".//h1").text == title


async def test_every_page_about_an_integration_names_it(operator: ConsoleClient, tenant: Tenant, codes: str) -> None:
    integration = await tenant.make_integration(name="Radio app")
    at = path_of(tenant, integration["id"])
    code = await tenant.make_code(audience={"enabled": True, "integration_id": integration["id"]})
    code_path = f"{codes}/{code['xr_id']}"
    pages = [await operator.get(f"{at}/{page}") for page in ("secret", "revoke", "report")]
    pages += [await operator.submit(at, {"retention_days": "5"}), await operator.submit(f"{at}/secret")]
    remember_secret(str(pages[-1].find(".//input[@id='secret']").get("value")))

    lines = [each.find(".//*[@id='integration']") for each in pages]
    lines.append((await operator.get(code_path)).find(".//*[@id='measured']"))
    assert [line.find(".//bdi").text for line in lines] == ["Radio app"] * 6  # type: ignore[union-attr]  # each has one
    assert {each.get("data-copy-value") for line in lines for each in line.iter("code")} == {integration["id"]}

    operator.core.refuse("GET /v1/audience/integrations", 503, "database_unavailable")
    for path in (f"{at}/report", code_path):
        page = await operator.get(path)
        assert (page.status, "Radio app" in page.text, integration["id"] in page.text) == (200, False, True)


@pytest.mark.parametrize(("mode", "days"), [("demo", 14), ("contract", 90)])
async def test_an_empty_retention_is_the_default_of_its_mode(
    operator: ConsoleClient, tenant: Tenant, rival: Rival, mode: str, days: int
) -> None:
    await tenant.make_entitlement(rival)

    created = await operator.submit(path_of(tenant), {"mode": mode, "retention_days": ""})

    remember_secret(str(created.find(".//input[@id='secret']").get("value")))
    assert (await integration_of(tenant))["retention_days"] == days


async def test_a_mode_that_needs_a_plan_says_so_and_cannot_be_chosen(
    operator: ConsoleClient, tenant: Tenant, rival: Rival
) -> None:
    async def find_disabled() -> list[str]:
        options = (await operator.get(path_of(tenant))).find_all(".//select[@name='mode']/option")
        return [str(each.text) for each in options if each.get("disabled") is not None]

    assert await find_disabled() == [
        "Contract (needs a contract for measuring)",
        "Self-service (needs an Audience plan)",
    ]
    await tenant.make_entitlement(rival)
    assert await find_disabled() == ["Self-service (needs an Audience plan)"]
    operator.core.refuse("GET /v1/billing/subscriptions", 503, "database_unavailable")
    assert await find_disabled() == [], "Core judges it"


async def test_integrations_are_listed_newest_first_and_by_page(operator: ConsoleClient, tenant: Tenant) -> None:
    older = await tenant.make_integration()
    newer = await tenant.make_integration(retention_days=3)

    page = await operator.get(path_of(tenant))

    links = [str(link.get("href")) for link in page.find_all(".//tbody/tr/th//a")]
    assert links == [path_of(tenant, newer["id"]), path_of(tenant, older["id"])]
    assert "3 days" in page.text


@pytest.mark.parametrize(
    ("fields", "status", "code"),
    [
        ({"mode": "demo", "retention_days": "30"}, 422, "validation_failed"),
        ({"mode": "demo", "retention_days": "a week"}, 422, "validation_failed"),
        ({"mode": "contract", "retention_days": "30"}, 409, "entitlement_required"),
        ({"mode": "nothing", "retention_days": "7"}, 422, "validation_failed"),
    ],
)
async def test_a_refused_integration_keeps_what_was_typed(
    operator: ConsoleClient, tenant: Tenant, fields: dict[str, str], status: int, code: str
) -> None:
    page = await operator.submit(path_of(tenant), fields)

    assert (page.status, page.trouble) == (status, code)
    assert page.value("retention_days") == fields["retention_days"]
    assert page.value("mode") == (fields["mode"] if fields["mode"] != "nothing" else "demo")


async def test_fewer_days_of_retention_are_confirmed_and_what_was_deleted_is_said(
    operator: ConsoleClient, tenant: Tenant, beside_core_url: Secret
) -> None:
    integration = await tenant.make_integration()
    now, path = tenant.api.clock.now(), path_of(tenant, integration["id"])
    events = [RecordedEvent(now - timedelta(days=days), days, "xr_" + "a" * 22) for days in (1, 8, 9)]
    days = {(now - timedelta(days=days)).date(): (1, 0, 0) for days in (1, 9)}
    await asyncio.to_thread(store_events, beside_core_url, integration["id"], events)
    await asyncio.to_thread(store_integrity_days, beside_core_url, integration["id"], days)

    asked = await operator.submit(path, {"retention_days": "5"})

    assert "deleted immediately" in asked.text
    assert (await integration_of(tenant))["retention_days"] == 14, "nothing has happened yet"
    sent = {name: asked.value(name) for name in ("retention_days", "confirmed")}
    changed = await operator.follow(await operator.submit(path, sent))
    assert "from 14 to 5." in changed.text
    assert "Events deleted: 2." in changed.text
    assert "Days of integrity signals deleted: 1." in changed.text
    assert (await integration_of(tenant))["retention_days"] == 5


async def integration_of(tenant: Tenant) -> dict[str, object]:
    listed = await tenant.api.get("/v1/audience/integrations", params=tenant.in_project)
    found: dict[str, object] = listed.json["data"][0]
    return found


async def test_more_days_of_retention_need_no_confirmation(operator: ConsoleClient, tenant: Tenant) -> None:
    integration = await tenant.make_integration(retention_days=3)

    page = await operator.follow(await operator.submit(path_of(tenant, integration["id"]), {"retention_days": "10"}))

    assert "from 3 to 10." in page.text


@pytest.mark.parametrize("days", ["0", "-1", "731"])
async def test_a_refused_retention_keeps_what_was_typed_and_asks_for_no_confirmation(
    operator: ConsoleClient, tenant: Tenant, days: str
) -> None:
    integration = await tenant.make_integration()

    page = await operator.submit(path_of(tenant, integration["id"]), {"retention_days": days})

    assert (page.status, page.trouble) == (422, "validation_failed")
    assert page.value("retention_days") == days


async def test_a_secret_is_replaced_after_a_confirmation(operator: ConsoleClient, tenant: Tenant) -> None:
    integration = await tenant.make_integration()
    path = path_of(tenant, integration["id"], "secret")
    assert "stops working immediately" in (await operator.get(path)).text
    assert (await integration_of(tenant))["secret_rotated_at"] is None

    page = await operator.submit(path)

    secret = page.find(".//input[@id='secret']").get("value") or ""
    remember_secret(secret)
    assert page.status == 200
    assert secret.startswith("xhm_")
    assert secret != integration["hmac_secret"]
    assert (await integration_of(tenant))["secret_rotated_at"] is not None


async def test_an_integration_is_revoked_after_a_confirmation(operator: ConsoleClient, tenant: Tenant) -> None:
    integration = await tenant.make_integration()
    path = path_of(tenant, integration["id"])
    assert "cannot be undone" in (await operator.get(f"{path}/revoke")).text
    assert (await integration_of(tenant))["status"] == "active"

    page = await operator.follow(await operator.submit(f"{path}/revoke"))

    assert "was revoked" in page.text
    assert (await integration_of(tenant))["status"] == "revoked"
    assert [link for link in page.find_all(".//a") if str(link.get("href")).endswith(("/secret", "/revoke"))] == []
    assert page.find(f".//a[@href='{path}/report']").text == "To its report"


async def test_the_page_says_what_a_revoked_integration_cannot_do(operator: ConsoleClient, tenant: Tenant) -> None:
    """A second tab, or the back button after a revocation."""
    integration = await tenant.make_integration()
    await tenant.change_integration("revoke", integration["id"])

    page = await operator.submit(path_of(tenant, integration["id"], "secret"))

    assert (page.status, page.trouble) == (409, "integration_revoked")


async def test_the_trusted_key_is_replaced(operator: ConsoleClient, tenant: Tenant) -> None:
    integration = await tenant.make_integration()
    path = path_of(tenant, integration["id"])

    page = await operator.follow(await operator.submit(f"{path}/core-key"))

    assert "now trusts Core’s current key" in page.text


async def test_an_unknown_integration_is_a_page_that_does_not_exist(operator: ConsoleClient, tenant: Tenant) -> None:
    for parts in (["int_" + "u" * 22], ["int_" + "u" * 22, "secret"], ["int_" + "u" * 22, "revoke"]):
        assert (await operator.get(path_of(tenant, *parts))).status == 404


async def test_a_member_sees_integrations_and_cannot_change_them(
    visitors: ConsoleClient, people: People, rival: Rival, clock: FakeClock
) -> None:
    tenant = await people.tenant_of("ada")
    integration = await tenant.make_integration()
    await tenant.make_member(rival, "bob", "member")
    bob = visitors.sign_in_as(people, "bob", clock.now())

    shown, one = await bob.get(path_of(tenant)), await bob.get(path_of(tenant, integration["id"]))
    attempts = [
        await bob.submit(path_of(tenant), {"mode": "demo", "retention_days": "7"}),
        await bob.submit(path_of(tenant, integration["id"]), {"retention_days": "14"}),
        await bob.submit(path_of(tenant, integration["id"], "secret")),
        await bob.submit(path_of(tenant, integration["id"], "revoke")),
        await bob.submit(path_of(tenant, integration["id"], "core-key")),
        await bob.get(path_of(tenant, integration["id"], "secret")),
        await bob.get(path_of(tenant, integration["id"], "revoke")),
    ]

    assert (shown.status, one.status) == (200, 200)
    assert shown.find_all(".//main//form") == one.find_all(".//main//form") == []
    assert [(page.status, page.trouble) for page in attempts] == [(403, "forbidden")] * 7


async def test_a_billing_member_sees_no_integrations(
    visitors: ConsoleClient, people: People, rival: Rival, clock: FakeClock
) -> None:
    tenant = await people.tenant_of("ada")
    await tenant.make_member(rival, "eve", "billing")
    eve = visitors.sign_in_as(people, "eve", clock.now())

    page = await eve.get(path_of(tenant))

    assert (page.status, page.trouble) == (403, "forbidden")


async def test_an_organization_of_others_is_a_page_that_does_not_exist(
    visitors: ConsoleClient, people: People, clock: FakeClock
) -> None:
    tenant = await people.tenant_of("ada")
    stranger = visitors.sign_in_as(people, "mallory", clock.now())

    assert (await stranger.get(path_of(tenant))).status == 404


@pytest.mark.parametrize("fault", ["down", "an error"])
async def test_an_audience_that_fails_keeps_what_was_typed(
    operator: ConsoleClient, tenant: Tenant, rival: Rival, database_url: Secret, clock: FakeClock, fault: str
) -> None:
    await tenant.give_cell(rival)
    async with audience_failing(operator, database_url, clock, fault):
        shown = await operator.get(path_of(tenant))
        page = await operator.submit(path_of(tenant), {"mode": "demo", "retention_days": "9"})

    assert (shown.status, shown.trouble) == (503, "audience_unavailable")
    assert (page.status, page.trouble) == (503, "audience_unavailable")
    assert page.value("retention_days") == "9"
    again = await operator.submit(path_of(tenant), {name: page.value(name) for name in ("mode", "retention_days")})
    assert again.status == 201
    remember_secret(str(again.find(".//input[@id='secret']").get("value")))


async def test_the_pages_are_written_in_french_too(operator: ConsoleClient, tenant: Tenant, clock: FakeClock) -> None:
    integration = await tenant.make_integration(retention_days=3)
    french = operator.other(language="fr").sign_in_as_operator(clock.now())

    assert "Intégrations Audience" in (await french.get(path_of(tenant))).text
    page = await french.submit(path_of(tenant, integration["id"]), {"retention_days": "1"})
    assert "Rien ne peut être restauré" in page.text
    assert "3 jours" in page.text


async def test_hostile_text_in_an_answer_stays_text(operator: ConsoleClient, tenant: Tenant) -> None:
    """Core would have to be hostile itself: the id of a key is the only free text of an integration."""
    integration = await tenant.make_integration()
    hostile = "<script>alert(1)</script>"
    operator.core.alter(
        "GET /v1/audience/integrations",
        lambda answer: {**answer, "data": [{**each, "core_key_id": hostile} for each in answer["data"]]},
    )

    page = await operator.get(path_of(tenant, integration["id"]))

    assert hostile in page.text
    assert [script.get("src", "").partition("?")[0] for script in page.find_all(".//script")] == [
        "/static/js/console.js"
    ]
