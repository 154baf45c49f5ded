"""The buttons with which a person chooses a language."""

import pytest
from support.console.client import ConsoleClient
from support.processes.secret_leaks import remember_secret
from support.tenancy.tenant import Tenant


async def test_the_choice_leads_back_to_the_page_and_lasts(operator: ConsoleClient) -> None:
    answer = await operator.submit("/language", {"language": "fr", "return_to": "/organizations?cursor="})

    assert answer.location == "/organizations?cursor="
    cookie = answer.headers["set-cookie"].lower()
    assert cookie.startswith("soundmark-8083-language=fr;")
    assert {"httponly", "samesite=lax", "path=/"} <= {part.strip() for part in cookie.split(";")}
    assert (await operator.get("/organizations")).find(".").get("lang") == "fr"


@pytest.mark.parametrize(
    "path",
    [
        *("//evil.example", "/\\evil.example", "https://evil.example/", "javascript:alert(1)", "/\t/evil.example"),
        *("/organizations\r\nset-cookie: a=b", ""),
    ],
)
async def test_the_choice_never_leads_elsewhere(operator: ConsoleClient, path: str) -> None:
    answer = await operator.submit("/language", {"language": "fr", "return_to": path})

    assert answer.location == "/"


@pytest.mark.parametrize("language", ["", "de", "fr\r\nset-cookie: a=b", "../en"])
async def test_an_unknown_language_changes_nothing(operator: ConsoleClient, language: str) -> None:
    answer = await operator.submit("/language", {"language": language, "return_to": "/organizations"})

    assert answer.location == "/organizations"
    assert "set-cookie" not in answer.headers


async def test_a_cookie_with_an_unknown_language_is_not_read(operator: ConsoleClient) -> None:
    operator.cookies.set("soundmark-8083-language", "../../secrets", domain="127.0.0.1", path="/")

    assert (await operator.get("/organizations")).find(".").get("lang") == "en"


async def test_a_page_with_a_secret_offers_no_language_since_the_change_would_lose_it(
    operator: ConsoleClient, tenant: Tenant
) -> None:
    path = f"/organizations/{tenant.organization_id}/webhooks/new"
    assert (await operator.get(path)).find_all(".//form[@action='/language']")

    page = await operator.submit(path, {"url": "https://consumer.example.org/", "which": "all"})

    remember_secret(page.find(".//input[@id='secret']").get("value") or "")
    assert page.find_all(".//form[@action='/language']") == []
    assert "Leaving this page loses it." in page.text
