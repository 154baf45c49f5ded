"""Issuing Codes by the form: what is sent, and the pages that show what was issued."""

import json
from datetime import UTC, datetime

import pytest
from support.console.client import ConsoleClient, MakeFields
from support.tenancy.tenant import Tenant

from soundmark.console import core_api


async def test_a_link_is_issued_and_its_code_is_shown(
    operator: ConsoleClient, tenant: Tenant, codes: str, fields: MakeFields
) -> None:
    answer = await operator.submit(f"{codes}/issue", fields())

    [code] = await tenant.list_codes()
    assert answer.location == f"{codes}/{code['xr_id']}#answered=key-of-the-tests"
    assert (await tenant.show_code(code["xr_id"]))["intent"] == {
        "type": "link",
        "action": "open",
        "resource": {"url": "https://example.org/offer"},
    }
    assert "1 Code was issued." in (await operator.follow(answer)).text


async def test_an_address_is_completed_and_its_title_is_signed(
    operator: ConsoleClient, tenant: Tenant, codes: str, fields: MakeFields, subtests: pytest.Subtests
) -> None:
    for typed, url in (
        ("example.org", "https://example.org"),
        ("example.org:8443/tonight?a=b.c", "https://example.org:8443/tonight?a=b.c"),
        ("https://example.org/", "https://example.org/"),
        ("http://example.org", None),
        ("mailto:somebody@example.org", None),
        ("somebody@example.org", None),
        ("tonight", None),
        ("/tonight.html", None),
    ):
        with subtests.test(typed=typed):
            changes = {"url": typed, "title": " Tonight ", "idempotency_key": f"key-of-the-tests-{len(typed)}"}
            answer = await operator.submit(f"{codes}/issue", fields(**changes))

            if url is None:
                assert (answer.status, answer.value("url")) == (422, typed)
                continue
            intent = (await tenant.show_code((await tenant.list_codes())[0]["xr_id"]))["intent"]
            assert intent == {"type": "link", "action": "open", "resource": {"url": url, "title": "Tonight"}}


async def test_another_intent_is_issued_exactly_as_it_was_typed(
    operator: ConsoleClient, tenant: Tenant, codes: str, fields: MakeFields
) -> None:
    resource = '{"b": [1, 1.5, "ä\\u0000"],\r\n "a": null}'
    changes = {"mode": "json", "type": "coupon", "action": "redeem", "resource": resource}

    await operator.submit(f"{codes}/issue", fields(**changes))

    [code] = await tenant.list_codes()
    intent = (await tenant.show_code(code["xr_id"]))["intent"]
    assert intent == {"type": "coupon", "action": "redeem", "resource": json.loads(resource)}


async def test_campaign_audience_and_expiry_are_taken_from_the_form(
    operator: ConsoleClient, tenant: Tenant, codes: str, fields: MakeFields
) -> None:
    campaign, integration = await tenant.make_campaign(), await tenant.make_integration()
    archived = await tenant.make_campaign("Over")
    await tenant.api.post(f"/v1/campaigns/{archived['id']}/archive", params=tenant.query)
    form = await operator.get(f"{codes}/issue")
    assert [each.text for each in form.find_all(".//select[@id='field-campaign_id']/option")] == [
        "No campaign",
        "Tonight",
    ]
    assert integration["id"] in form.text

    chosen = {"campaign_id": campaign["id"], "integration_id": integration["id"], "expires_at_zone": "Africa/Tunis"}
    await operator.submit(f"{codes}/issue", fields(**chosen))

    [code] = await tenant.list_codes()
    assert (code["campaign_id"], code["audience_integration_id"]) == (campaign["id"], integration["id"])
    expires_at = datetime.fromisoformat(code["expires_at"])
    assert (expires_at.astimezone(UTC).month, expires_at.hour) == (6, 11), "Tunis is an hour ahead of UTC"


async def test_a_field_takes_as_many_emoji_as_core_does(
    operator: ConsoleClient, tenant: Tenant, codes: str, fields: MakeFields
) -> None:
    """A browser counts an emoji as two characters, and drops what is past the limit of the field."""
    issuer = "\U0001f4fb" * 160
    limit = (await operator.get(f"{codes}/issue")).find(".//input[@name='issuer']").get("maxlength")
    assert len(issuer.encode("utf-16-le")) // 2 == int(limit)

    await operator.submit(f"{codes}/issue", fields(issuer=issuer))

    assert [code["issuer"] for code in await tenant.list_codes()] == [issuer]


async def test_a_batch_leads_to_its_sounds_and_its_codes(
    operator: ConsoleClient, tenant: Tenant, codes: str, fields: MakeFields
) -> None:
    campaign = await tenant.make_campaign()
    await tenant.make_code()
    answer = await operator.submit(f"{codes}/issue", fields(count="3", campaign_id=campaign["id"]))

    page = await operator.follow(answer)

    issued = {code["xr_id"] for code in await tenant.list_codes() if code["campaign_id"]}
    assert page.heading == "3 Codes were issued."
    assert "example.org/offer" in page.text
    assert {each.get("value") for each in page.find_all(".//input[@name='xr_ids']")} == issued
    assert {str(each.get("href")).rpartition("/")[2] for each in page.find_all(".//ul[@class='ids']//a")} == issued
    assert "".join(page.find(".//dd[@id='campaign']").itertext()) == "Tonight"
    links = {each.text: each.get("href") for each in page.find_all(".//main//a")}
    assert links["Open the list"] == f"{codes}?campaign_id={campaign['id']}"
    assert links["Issue more"] == f"{codes}/issue?campaign_id={campaign['id']}"
    assert answer.location.endswith("#answered=key-of-the-tests")


async def test_the_way_to_a_hundred_codes_fits_into_the_headers_that_proxies_take(
    operator: ConsoleClient, codes: str, fields: MakeFields
) -> None:
    """nginx takes 4 KiB of them unless it is told otherwise."""
    answer = await operator.submit(f"{codes}/issue", fields(count="100"))

    assert len(answer.location) < 2600
    page = await operator.follow(answer)
    assert len(page.find_all(".//ul[@class='ids']/li")) == 100


@pytest.mark.parametrize("ids", ["", "short", "..", "a" * 22, ".".join(f"{number:022}" for number in range(101))])
async def test_what_was_not_issued_is_a_page_that_does_not_exist(operator: ConsoleClient, codes: str, ids: str) -> None:
    assert (await operator.get(f"{codes}/issued", params={"ids": ids})).status == 404


async def test_a_form_that_is_sent_twice_issues_once(
    operator: ConsoleClient, tenant: Tenant, codes: str, fields: MakeFields
) -> None:
    first = await operator.submit(f"{codes}/issue", fields(count="2"))
    second = await operator.submit(f"{codes}/issue", fields(count="2"))

    assert first.location == second.location
    assert len(await tenant.list_codes()) == 2


async def test_a_form_that_issued_and_was_changed_gets_a_new_key(
    operator: ConsoleClient, tenant: Tenant, codes: str, fields: MakeFields
) -> None:
    await operator.submit(f"{codes}/issue", fields())

    page = await operator.submit(f"{codes}/issue", fields(issuer="Radio Süd"))

    assert page.status == 409
    assert page.trouble == "idempotency_conflict"
    assert "Send it again to issue Codes with the current values." in page.text
    assert "Open the page again" not in page.text, "there is one instruction"
    assert "This form was already sent with other values" in page.text
    key = page.value("idempotency_key")
    assert key != "key-of-the-tests"
    await operator.submit(f"{codes}/issue", fields(issuer="Radio Süd", idempotency_key=key))
    assert [code["issuer"] for code in await tenant.list_codes()] == ["Radio Süd", "Radio Nordlicht"]


async def test_an_issuance_that_takes_all_the_time_is_kept_and_not_asked_about(
    operator: ConsoleClient, codes: str, fields: MakeFields, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The recovery tuple in the page is the only way to learn what became of it, and nothing else would be answered."""
    await operator.get(codes)  # The names of the tenant are known from now on.
    monkeypatch.setattr(core_api, "_TIMEOUT_S", 0.3)
    operator.core.hold("POST /v1/codes", b"")
    operator.core.calls.clear()

    page = await operator.submit(f"{codes}/issue", fields())

    assert (page.status, page.trouble) == (503, "core_unreachable")
    assert page.find(".//section[@id='unsettled']") is not None
    assert page.value("url") == "https://example.org/offer"
    assert [call.url.path for call in operator.core.calls] == ["/v1/codes"]
