"""What fields say of themselves, to readers of the page and of the screen alike: a format, and why one is refused."""

import re
from datetime import date, datetime

import pytest
from support.console.client import ConsoleClient
from support.console.page_paths import list_paths
from support.tenancy.tenant import Tenant

from soundmark.console.language import LOCALES, get_language

TYPES = {"datetime-local", "date", "url", "email"}
NAMES = {
    *("url", "hosts", "added", "address_prefix", "xr_id", "amount_minor", "price_reference", "organization_id"),
    *("offer_id", "plan_id", "smtp_host", "smtp_port", "smtp_from_email", "accounting_base_url", "accounting_tva_rate"),
    *("accounting_entity_id", "support_desk_base_url", "support_desk_mailbox_id"),
}


async def test_every_field_with_a_format_says_which(operator: ConsoleClient, tenant: Tenant) -> None:
    await tenant.allow_hosts(["example.org"])
    campaign, endpoint = await tenant.make_campaign(), await tenant.make_webhook_endpoint()
    await tenant.make_integration()
    ids = {
        "organization_id": tenant.organization_id,
        "project_id": tenant.project_id,
        "campaign_id": campaign["id"],
        "endpoint_id": endpoint["id"],
        "integration_id": (await tenant.make_integration())["id"],
    }
    kinds = ("plan?product=codes", "offer?provider=local", "offer?provider=card", "contract")
    systems = ("smtp", "support", "accounting")

    silent, seen = set(), set()
    for path in (
        *list_paths(ids),
        *(f"/platform/catalog/{kind}" for kind in kinds),
        *(f"/platform/systems/{system}" for system in systems),
    ):
        page = await operator.get(path)
        if "text/html" not in page.headers.get("content-type", "") or path == "/design":
            continue
        texts = {str(each.get("id")): "".join(each.itertext()).strip() for each in page.find_all(".//*[@id]")}
        for each in (*page.find_all(".//main//input"), *page.find_all(".//main//textarea")):
            if each.get("type") != "hidden" and (each.get("type") in TYPES or each.get("name") in NAMES):
                seen |= {each.get("type"), each.get("name")}
                described = str(each.get("aria-describedby") or "nothing").split()
                if not all(texts.get(hint) for hint in described):
                    silent.add((path, each.get("name")))
    assert silent == set()
    assert {*TYPES, *NAMES} <= seen


@pytest.mark.parametrize("code", LOCALES)
def test_the_example_of_a_format_is_one_that_is_read(code: str) -> None:
    """People without a picker, or with a browser that has none, type what the hint shows."""
    language = get_language(code)
    moment, day = (re.search(r"\d[^,]*\d", language.say(f"forms.{name}_format")) for name in ("moment", "day"))
    assert moment is not None
    assert day is not None

    assert datetime.fromisoformat(moment[0]) == datetime(2026, 11, 27, 20, 15)  # noqa: DTZ001 - its zone stands beside it
    assert date.fromisoformat(day[0]) == date(2026, 11, 27)


async def test_every_refusal_is_tied_to_its_control(
    operator: ConsoleClient, tenant: Tenant, codes: str, subtests: pytest.Subtests
) -> None:
    """By the page and what is sent: the control that the refusal describes, and whether it is one that is invalid."""
    project = codes.removesuffix("/codes")
    new_webhook = f"/organizations/{tenant.organization_id}/webhooks/new"
    for path, sent, name, is_invalid in (
        (f"{codes}?status=bogus", None, "status", True),
        (f"{project}/api-keys", {"expires_in_days": "30"}, "scopes", False),
        (new_webhook, {"url": "https://example.org/", "which": "chosen"}, "event_types", False),
        (f"{project}/allowed-hosts", {"mode": "listed", "added": "a.example A.example"}, "hosts", False),
    ):
        with subtests.test(path=path):
            page = await operator.get(path) if sent is None else await operator.submit(path, sent)

            [refusal] = page.find_all(".//p[@class='refusal']")
            control = page.find(f".//*[@id='field-{name}']")
            assert refusal.get("id") in str(control.get("aria-describedby")).split()
            assert control.get("aria-invalid") == ("true" if is_invalid else None)
