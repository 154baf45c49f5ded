"""The pages of API keys."""

import pytest
from support.console.client import ConsoleClient, PageAnswer
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock
from support.processes.secret_leaks import remember_secret
from support.tenancy.people import People
from support.tenancy.tenant import Tenant, make_second_project

NEW = {"scopes": ["codes:read", "audience:read"], "expires_in_days": "30"}


def path_of(tenant: Tenant, rest: str = "") -> str:
    return f"/organizations/{tenant.organization_id}/projects/{tenant.project_id}/api-keys{rest}"


def read_secret(page: PageAnswer) -> str:
    secret = page.find(".//input[@id='secret']").get("value") or ""
    remember_secret(secret)
    return secret


async def list_keys(tenant: Tenant) -> list[dict[str, object]]:
    keys: list[dict[str, object]] = (await tenant.api.get("/v1/api-keys", params=tenant.in_project)).json["data"]
    return keys


async def use(tenant: Tenant, secret: str) -> int:
    """Return how a call with this secret ends."""
    return (await tenant.api.other(token=secret).get("/v1/codes", params=tenant.query)).status


async def test_a_key_is_created_and_its_secret_is_shown_once(operator: ConsoleClient, tenant: Tenant) -> None:
    assert "No API keys yet." in (await operator.get(path_of(tenant))).text

    page = await operator.submit(path_of(tenant), NEW)

    secret = read_secret(page)
    assert page.status == 200
    assert page.headers["cache-control"] == "no-store"
    assert "set-cookie" not in page.headers, "a secret is in no cookie"
    [key] = await list_keys(tenant)
    assert key["scopes"] == ["audience:read", "codes:read"]
    assert await use(tenant, secret) == 200
    assert "It is shown only once." in page.text
    assert page.find(".//input[@id='secret']").get("data-copy") is not None
    listed = await operator.get(path_of(tenant))
    assert key["id"] in listed.text
    assert secret not in listed.html
    assert "never" not in listed.text, "it was used just now"


async def test_a_key_has_a_name_that_is_changed_and_removed(operator: ConsoleClient, tenant: Tenant) -> None:
    read_secret(await operator.submit(path_of(tenant), {**NEW, "name": "Playout PC"}))
    [key] = await list_keys(tenant)
    assert key["name"] == "Playout PC"
    assert "Playout PC" in (await operator.get(path_of(tenant))).find(".//tbody//th/bdi").text

    at = path_of(tenant, f"/{key['id']}/name")
    assert (await operator.get(at)).value("name") == "Playout PC"
    for typed, stored in (("Studio 2", "Studio 2"), ("", None)):
        answer = await operator.submit(at, {"name": typed})
        assert answer.location == path_of(tenant)
        assert [each["name"] for each in await list_keys(tenant)] == [stored]
    refused = await operator.submit(at, {"name": "n" * 121})
    assert (refused.status, refused.value("name")) == (422, "n" * 121)


@pytest.mark.parametrize(
    ("changes", "refused"),
    [
        ({"expires_in_days": "0"}, "expires_in_days"),
        ({"expires_in_days": "366"}, "expires_in_days"),
        ({"expires_in_days": "a month"}, "expires_in_days"),
        ({"scopes": []}, "scopes"),
    ],
)
async def test_a_refused_key_is_shown_again_with_what_was_typed(
    operator: ConsoleClient, tenant: Tenant, changes: dict[str, object], refused: str
) -> None:
    page = await operator.submit(path_of(tenant), {**NEW, **changes})

    assert (page.status, page.trouble) == (422, "validation_failed")
    assert page.find(f".//*[@id='field-{refused}']/..") is not None
    assert page.find(".//p[@class='refusal']").text
    assert page.value("expires_in_days") == changes.get("expires_in_days", "30")
    ticked = [box.get("value") for box in page.find_all(".//input[@type='checkbox']") if box.get("checked") is not None]
    assert ticked == sorted(changes.get("scopes", NEW["scopes"]))  # type: ignore[call-overload]  # a list of texts
    assert await list_keys(tenant) == []


@pytest.mark.parametrize(
    ("preset", "scopes"),
    [
        ("issuing", ["codes:read", "codes:write"]),
        ("reading", ["audience:read", "codes:read"]),
        ("measuring", ["audience:read", "audience:write"]),
        ("unknown", []),
    ],
)
async def test_a_preset_ticks_scopes_that_can_be_changed_and_creates_nothing(
    operator: ConsoleClient, tenant: Tenant, preset: str, scopes: list[str]
) -> None:
    page = await operator.submit(
        path_of(tenant), {**NEW, "name": "Playout PC", "expires_in_days": "", "preset": preset}
    )

    assert (page.status, page.trouble, await list_keys(tenant)) == (200, None, [])
    assert (page.value("name"), page.value("expires_in_days")) == ("Playout PC", "")
    boxes = page.find_all(".//input[@name='scopes']")
    assert (len(boxes), [each.get("value") for each in boxes if each.get("checked") is not None]) == (4, scopes)
    offered = {each.get("value") for each in page.find_all(".//button[@name='preset']")}
    assert offered == {"issuing", "reading", "measuring"}
    first = page.find(".//main//form//button")
    assert first.get("name") is None, "Enter in a field presses the first button, which creates the key"


async def test_a_scope_that_does_not_exist_is_refused(operator: ConsoleClient, tenant: Tenant) -> None:
    assert (await operator.submit(path_of(tenant), {**NEW, "scopes": "<b>all"})).trouble == "validation_failed"


async def test_a_secret_is_replaced_after_its_confirmation(operator: ConsoleClient, tenant: Tenant) -> None:
    key = await tenant.make_key()
    path = path_of(tenant, f"/{key['id']}/rotate")
    asked = await operator.get(path)
    assert "The current secret stops working immediately." in asked.text
    assert await use(tenant, key["secret"]) == 200

    page = await operator.submit(path)

    assert await use(tenant, read_secret(page)) == 200
    assert await use(tenant, key["secret"]) == 401
    assert "The secret was rotated" in page.text


async def test_a_key_is_revoked_after_its_confirmation(operator: ConsoleClient, tenant: Tenant) -> None:
    key = await tenant.make_key()
    path = path_of(tenant, f"/{key['id']}/revoke")
    assert "cannot be restored" in (await operator.get(path)).text
    assert await use(tenant, key["secret"]) == 200

    page = await operator.follow(await operator.submit(path))

    assert "The key is revoked." in page.text
    assert page.find(".//tbody/tr/td/span").text == "revoked"
    assert await use(tenant, key["secret"]) == 401
    for action in ("revoke", "rotate"):
        again = await operator.get(path_of(tenant, f"/{key['id']}/{action}"))
        assert "This key no longer works" in again.text
        assert not again.find_all(".//main//button")
    assert (await operator.submit(path_of(tenant, f"/{key['id']}/rotate"))).trouble == "api_key_not_active"


async def test_a_key_of_another_project_is_a_page_that_does_not_exist(operator: ConsoleClient, tenant: Tenant) -> None:
    key = await tenant.make_key()
    other = await make_second_project(tenant)

    assert (await operator.get(path_of(other, f"/{key['id']}/revoke"))).trouble == "page_not_found"
    assert (await operator.submit(path_of(tenant, "/key_unknown/revoke"))).trouble == "page_not_found"


async def test_a_member_is_shown_no_key_and_changes_nothing(
    visitors: ConsoleClient, people: People, rival: Rival, clock: FakeClock
) -> None:
    tenant = await people.tenant_of("owner")
    key = await tenant.make_key()
    await tenant.make_member(rival, "reader", "member")
    visitors.sign_in_as(people, "reader", clock.now())

    pages = [
        await visitors.get(path_of(tenant)),
        await visitors.submit(path_of(tenant), NEW),
        await visitors.submit(path_of(tenant, f"/{key['id']}/rotate")),
        await visitors.submit(path_of(tenant, f"/{key['id']}/revoke")),
    ]

    for page in pages:
        assert (page.status, page.trouble) == (403, "forbidden")
        assert "Ask an owner or an administrator" in page.text
        assert key["id"] not in page.text
    assert await use(tenant, key["secret"]) == 200


async def test_a_core_that_is_down_keeps_what_was_typed(operator: ConsoleClient, tenant: Tenant) -> None:
    operator.core.lose("POST /v1/api-keys")

    page = await operator.submit(path_of(tenant), NEW)

    assert (page.status, page.trouble) == (503, "core_unreachable")
    assert page.value("expires_in_days") == "30"
    operator.core.go_down()
    kept = await operator.submit(path_of(tenant), NEW)
    assert {field.get("value") for field in kept.find_all(".//input[@name='scopes']")} == set(NEW["scopes"])


async def test_the_pages_speak_french(operator: ConsoleClient, tenant: Tenant, clock: FakeClock) -> None:
    french = operator.other(language="fr").sign_in_as_operator(clock.now())

    page = await french.submit(path_of(tenant), NEW)

    assert read_secret(page)
    assert page.find(".//h1").text == "La clé d’API a été créée"
    assert "lire les rapports" in page.text
