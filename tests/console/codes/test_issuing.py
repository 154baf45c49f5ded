"""The form that issues Codes."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from support.console.client import ConsoleClient
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock
from support.tenancy.tenant import Tenant

from soundmark.console import core_api

Fields = Callable[..., dict[str, Any]]


async def _codes(tenant: Tenant) -> list[dict[str, Any]]:
    answer = await tenant.api.get("/v1/codes", params=tenant.in_project)
    codes: list[dict[str, Any]] = answer.json["data"]
    return codes


async def _detail(tenant: Tenant, xr_id: str) -> dict[str, Any]:
    code: dict[str, Any] = (await tenant.api.get(f"/v1/codes/{xr_id}", params=tenant.query)).json
    return code


async def test_a_link_is_issued_and_its_code_is_shown(
    operator: ConsoleClient, tenant: Tenant, codes: str, fields: Fields
) -> None:
    answer = await operator.submit(f"{codes}/issue", fields())

    [code] = await _codes(tenant)
    assert answer.location == f"{codes}/{code['xr_id']}#answered=key-of-the-tests"
    assert (await _detail(tenant, code["xr_id"]))["intent"] == {
        "type": "link",
        "action": "open",
        "resource": {"url": "https://example.org/offer"},
    }
    assert "1 Code was issued." in (await operator.follow(answer)).text


async def test_no_field_that_an_intent_needs_is_called_optional(operator: ConsoleClient, codes: str) -> None:
    page = await operator.get(f"{codes}/issue")

    assert page.find(".//label[@for='field-resource']").text == "Resource"
    optional = [each for each in page.find_all(".//label") if each.find("./span[@class='optional']") is not None]
    assert [each.get("for") for each in optional] == ["field-title"]


async def test_the_issuer_is_the_last_one_or_else_the_organizations_name(
    operator: ConsoleClient, tenant: Tenant, codes: str, fields: Fields
) -> None:
    operator.core.refuse("GET /v1/codes", 503, "database_unavailable")
    assert (await operator.get(f"{codes}/issue")).value("issuer") == "Radio Nordlicht"
    operator.core.recover()
    assert (await operator.get(f"{codes}/issue")).value("issuer") == "Radio Nordlicht"
    await tenant.make_code(issuer=f"Radio Süd {tenant.project_id}")

    assert (await operator.get(f"{codes}/issue")).value("issuer") == f"Radio Süd {tenant.project_id}"
    assert (await operator.submit(f"{codes}/issue", fields(issuer=""))).value("issuer") == "", "it was removed"


async def test_an_address_is_completed_and_its_title_is_signed(
    operator: ConsoleClient, tenant: Tenant, codes: str, fields: Fields, subtests: pytest.Subtests
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
            intent = (await _detail(tenant, (await _codes(tenant))[0]["xr_id"]))["intent"]
            assert intent == {"type": "link", "action": "open", "resource": {"url": url, "title": "Tonight"}}


async def test_a_preset_is_the_expiry_in_the_zone_of_the_form_and_loses_nothing(
    operator: ConsoleClient, tenant: Tenant, codes: str, fields: Fields, clock: FakeClock
) -> None:
    clock.freeze()
    here = clock.now().astimezone(ZoneInfo("Asia/Tokyo"))
    ends = {"hour": here + timedelta(hours=1), "today": here.replace(hour=23, minute=59)}
    ends["week"] = here + timedelta(days=7)
    offered = (await operator.get(f"{codes}/issue")).find_all(".//button[@name='preset']")
    assert [each.get("value") for each in offered] == list(ends)

    for preset, end in ends.items():
        typed = fields(preset=preset, expires_at_zone="Asia/Tokyo", title="Tonight", expires_at="")
        page = await operator.submit(f"{codes}/issue", typed)
        assert (page.status, page.value("expires_at")) == (200, end.strftime("%Y-%m-%dT%H:%M"))
        assert {name: page.value(name) for name in ("url", "title", "expires_at_zone")} == {
            name: typed[name] for name in ("url", "title", "expires_at_zone")
        }
        assert page.value("idempotency_key") == typed["idempotency_key"]
    for broken in ({"preset": "year"}, {"preset": "hour", "expires_at_zone": "Mars/Olympus"}):
        assert (await operator.submit(f"{codes}/issue", fields(**broken))).trouble == "form_malformed"
    assert await _codes(tenant) == []


async def test_the_first_button_of_the_form_issues(operator: ConsoleClient, codes: str) -> None:
    """Enter in a field presses it."""
    form = (await operator.get(f"{codes}/issue")).find(".//form[@id='issuance']")

    assert [each.get("name") for each in form.findall(".//button")][:2] == ["issue", "preset"]


async def test_a_check_shows_what_listeners_will_see(operator: ConsoleClient, codes: str, fields: Fields) -> None:
    page = await operator.submit(f"{codes}/issue", fields(check="yes", title="<b>Tonight</b>"))

    shown = page.find(".//section[@id='preview']")
    assert shown.get("hidden") is None
    assert (shown.find(".//strong").text, shown.find(".//bdi[@class='text']").text) == ("example.org", "/offer")  # type: ignore[union-attr]  # both are there
    assert "<b>Tonight</b>" in "".join(shown.itertext())
    assert (await operator.get(f"{codes}/issue")).find(".//section[@id='preview']").get("hidden") is not None


async def test_a_field_takes_as_many_emoji_as_core_does(
    operator: ConsoleClient, tenant: Tenant, codes: str, fields: Fields
) -> None:
    """A browser counts an emoji as two characters, and drops what is past the limit of the field."""
    issuer = "\U0001f4fb" * 160
    limit = (await operator.get(f"{codes}/issue")).find(".//input[@name='issuer']").get("maxlength")
    assert len(issuer.encode("utf-16-le")) // 2 == int(limit)

    await operator.submit(f"{codes}/issue", fields(issuer=issuer))

    assert [code["issuer"] for code in await _codes(tenant)] == [issuer]


async def test_another_intent_is_issued_exactly_as_it_was_typed(
    operator: ConsoleClient, tenant: Tenant, codes: str, fields: Fields
) -> None:
    resource = '{"b": [1, 1.5, "ä\\u0000"],\r\n "a": null}'
    changes = {"mode": "json", "type": "coupon", "action": "redeem", "resource": resource}

    await operator.submit(f"{codes}/issue", fields(**changes))

    [code] = await _codes(tenant)
    intent = (await _detail(tenant, code["xr_id"]))["intent"]
    assert intent == {"type": "coupon", "action": "redeem", "resource": json.loads(resource)}


async def test_a_batch_leads_to_its_sounds_and_its_codes(
    operator: ConsoleClient, tenant: Tenant, codes: str, fields: Fields
) -> None:
    campaign = await tenant.make_campaign()
    await tenant.make_code()
    answer = await operator.submit(f"{codes}/issue", fields(count="3", campaign_id=campaign["id"]))

    page = await operator.follow(answer)

    issued = {code["xr_id"] for code in await _codes(tenant) if code["campaign_id"]}
    assert page.heading == "3 Codes were issued."
    assert "example.org/offer" in page.text
    assert {each.get("value") for each in page.find_all(".//input[@name='xr_ids']")} == issued
    assert {str(each.get("href")).rpartition("/")[2] for each in page.find_all(".//ul[@class='ids']//a")} == issued
    links = {each.text: each.get("href") for each in page.find_all(".//main//a")}
    assert links["Open the list"] == f"{codes}?campaign_id={campaign['id']}"
    assert links["Issue more"] == f"{codes}/issue?campaign_id={campaign['id']}"
    assert answer.location.endswith("#answered=key-of-the-tests")


async def test_the_way_to_a_hundred_codes_fits_into_the_headers_that_proxies_take(
    operator: ConsoleClient, codes: str, fields: Fields
) -> None:
    """nginx takes 4 KiB of them unless it is told otherwise."""
    answer = await operator.submit(f"{codes}/issue", fields(count="100"))

    assert len(answer.location) < 2600
    page = await operator.follow(answer)
    assert len(page.find_all(".//ul[@class='ids']/li")) == 100


@pytest.mark.parametrize("ids", ["", "short", "..", "a" * 22, ".".join(f"{number:022}" for number in range(101))])
async def test_what_was_not_issued_is_a_page_that_does_not_exist(operator: ConsoleClient, codes: str, ids: str) -> None:
    assert (await operator.get(f"{codes}/issued", params={"ids": ids})).status == 404


async def test_campaign_audience_and_expiry_are_taken_from_the_form(
    operator: ConsoleClient, tenant: Tenant, codes: str, fields: Fields
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

    [code] = await _codes(tenant)
    assert (code["campaign_id"], code["audience_integration_id"]) == (campaign["id"], integration["id"])
    expires_at = datetime.fromisoformat(code["expires_at"])
    assert (expires_at.astimezone(UTC).month, expires_at.hour) == (6, 11), "Tunis is an hour ahead of UTC"


async def test_a_link_from_a_campaign_chooses_it(operator: ConsoleClient, tenant: Tenant, codes: str) -> None:
    campaign = await tenant.make_campaign()

    assert (await operator.get(f"{codes}/issue?campaign_id={campaign['id']}")).value("campaign_id") == campaign["id"]


async def test_choices_cost_few_calls_however_many_campaigns_there_are(
    operator: ConsoleClient, tenant: Tenant, codes: str, rival: Rival
) -> None:
    await rival.run(
        "INSERT INTO campaigns (organization_id, project_id, id, name, created_at, archived_at)"
        " SELECT %s, %s, 'cmp_' || lpad(n::text, 22, '0'), 'Campaign ' || n, %s, %s"
        " FROM generate_series(1, 501) AS n",
        tenant.organization_id,
        tenant.project_id,
        *[tenant.api.clock.now()] * 2,
    )

    for path, calls_max in ((codes, 1), (f"{codes}/issue", 3)):
        before = len(operator.core.calls)
        assert (await operator.get(path)).status == 200
        listings = [call for call in operator.core.calls[before:] if call.url.path == "/v1/campaigns"]
        assert len(listings) <= calls_max, path


async def test_each_form_has_a_key_of_its_own(operator: ConsoleClient, codes: str) -> None:
    keys = {(await operator.get(f"{codes}/issue")).value("idempotency_key") for _ in range(2)}

    assert len(keys) == 2
    assert all(len(key) == 43 for key in keys)


async def test_a_form_that_is_sent_twice_issues_once(
    operator: ConsoleClient, tenant: Tenant, codes: str, fields: Fields
) -> None:
    first = await operator.submit(f"{codes}/issue", fields(count="2"))
    second = await operator.submit(f"{codes}/issue", fields(count="2"))

    assert first.location == second.location
    assert len(await _codes(tenant)) == 2


async def test_a_form_that_issued_and_was_changed_gets_a_new_key(
    operator: ConsoleClient, tenant: Tenant, codes: str, fields: Fields
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
    assert [code["issuer"] for code in await _codes(tenant)] == ["Radio Süd", "Radio Nordlicht"]


async def test_a_field_that_is_refused_says_why_and_nothing_is_issued(
    operator: ConsoleClient, tenant: Tenant, codes: str, fields: Fields, subtests: pytest.Subtests
) -> None:
    for changes, field in [
        ({"url": "javascript:alert(1)"}, "url"),
        ({"url": "http://example.org"}, "url"),
        ({"url": "https://[::1"}, "url"),
        ({"url": "https:///nowhere"}, "url"),
        ({"url": "https://exa mple.org"}, "url"),
        ({"url": "https://example.org/" + "a" * 16_400}, "url"),
        ({"mode": "json", "type": "t", "action": "a", "resource": "[1]"}, "resource"),
        ({"mode": "json", "type": "t", "action": "a", "resource": '{"a": 1, "a": 2}'}, "resource"),
        ({"mode": "json", "type": "t", "action": "a", "resource": '{"a": 9007199254740993}'}, "resource"),
        ({"mode": "json", "type": "t", "action": "a", "resource": '{"a": NaN}'}, "resource"),
        ({"mode": "json", "type": "", "action": "a", "resource": "{}"}, "type"),
        ({"expires_at": ""}, "expires_at"),
        ({"expires_at": "2020-01-01T00:00"}, "expires_at"),
        ({"expires_at": "9999-12-31T23:59", "expires_at_zone": "America/New_York"}, "expires_at"),
        ({"count": "0"}, "count"),
        ({"count": "101"}, "count"),
        ({"count": "many"}, "count"),
        ({"issuer": ""}, "issuer"),
        ({"issuer": "r" * 161}, "issuer"),
    ]:
        with subtests.test(changes=changes, field=field):
            page = await operator.submit(f"{codes}/issue", fields(**changes))

            assert page.status == 422
            assert page.trouble == "validation_failed"
            assert page.find(f".//p[@id='refused-{field}']").text
            for name, value in fields(**changes).items():
                control = f".//input[@name='{name}'][@checked]" if name == "mode" else f".//*[@name='{name}']"
                shown = page.find(control).get("value") if name == "mode" else page.value(name)
                assert str(shown).strip("\n") == value, f"{name} is kept"
            assert await _codes(tenant) == []


async def test_hostile_values_are_shown_again_as_text(
    operator: ConsoleClient, tenant: Tenant, codes: str, fields: Fields
) -> None:
    hostile = "\"><script>alert(1)</script></textarea><img src=x onerror=alert(1)>'"
    changes = {"mode": "json", "type": hostile, "action": hostile, "issuer": hostile, "resource": hostile}
    await tenant.make_campaign(hostile[:120])

    page = await operator.submit(f"{codes}/issue", fields(**changes))

    assert page.value("issuer") == hostile
    assert page.value("resource").strip("\n") == hostile
    assert not page.find_all(".//body//script")
    assert not page.find_all(".//img")


async def test_a_used_up_quota_says_when_it_is_renewed(
    operator: ConsoleClient, tenant: Tenant, codes: str, fields: Fields, *, rival: Rival, clock: FakeClock
) -> None:
    await tenant.make_quota(rival, 2)

    page = await operator.submit(f"{codes}/issue", fields(count="3"))

    assert page.status == 429
    assert page.trouble == "quota_exceeded"
    now = clock.now()
    renewed = datetime(now.year + now.month // 12, now.month % 12 + 1, 1, tzinfo=UTC)
    moment = page.find(".//section[@id='trouble']//time").get("datetime")
    assert abs((datetime.fromisoformat(str(moment)) - renewed).total_seconds()) < 120
    assert "second" not in page.text
    assert page.value("count") == "3"
    assert page.find(".//section[@id='kept-requests']").get("data-settled") == "key-of-the-tests"


async def test_a_campaign_that_is_not_open_issues_nothing(
    operator: ConsoleClient, tenant: Tenant, codes: str, fields: Fields
) -> None:
    later = f"{tenant.api.clock.now().year + 1}-01-01T00:00:00Z"
    campaign = await tenant.make_campaign(starts_at=later)

    page = await operator.submit(f"{codes}/issue", fields(campaign_id=campaign["id"]))

    assert page.status == 409
    assert page.trouble == "campaign_not_open"
    assert page.value("campaign_id") == campaign["id"]
    assert await _codes(tenant) == []


async def test_check_says_what_would_happen_and_issues_nothing(
    operator: ConsoleClient, tenant: Tenant, codes: str, fields: Fields
) -> None:
    page = await operator.submit(f"{codes}/issue", fields(count="7", check="yes"))

    verdict = page.find(".//p[@id='verdict']")
    assert verdict.get("data-would-issue") == "yes"
    assert verdict.text == "This would be issued. 100 Codes are left this month."
    assert page.value("count") == "7"
    assert page.value("idempotency_key") == "key-of-the-tests"
    assert await _codes(tenant) == []


async def test_the_verdict_names_the_reason(
    operator: ConsoleClient, tenant: Tenant, codes: str, fields: Fields, rival: Rival
) -> None:
    await tenant.make_quota(rival, 2)

    for changes, would_issue, words in (
        ({}, True, "This would be issued. 2 Codes are left this month."),
        ({"count": "3"}, False, "2 Codes are left this month."),
        ({"url": "http://example.org"}, False, "Enter a web address that begins with https://."),
        ({"campaign_id": "cmp_0000000000000000000000"}, False, "Campaign not found"),
        ({"url": "somewhere"}, False, "Address: Enter"),
        ({"issuer": ""}, False, "Issuer: Fill this in."),
        ({"issuer": "i" * 161}, False, "Issuer: Use at most 160 characters."),
        ({"expires_at": "2020-01-01T00:00"}, False, "Expires: Choose a time in the future."),
    ):
        answer = (await operator.submit(f"{codes}/issue/verdict", fields(**changes))).response.json()
        assert answer["would_issue"] is would_issue, changes
        assert words in answer["sentence"], changes
    assert await _codes(tenant) == []


async def test_a_foreign_form_gets_no_verdict_and_no_tuple(operator: ConsoleClient, codes: str, fields: Fields) -> None:
    for path in ("verdict", "tuple"):
        answer = await operator.submit(f"{codes}/issue/{path}", fields(), headers={"origin": "https://evil.example"})
        assert answer.status == 403


async def test_a_key_that_the_console_did_not_make_is_refused(
    operator: ConsoleClient, tenant: Tenant, codes: str, fields: Fields
) -> None:
    page = await operator.submit(f"{codes}/issue", fields(idempotency_key="short"))

    assert page.status == 400
    assert page.trouble == "form_malformed"
    assert await _codes(tenant) == []


async def test_an_issuance_that_takes_all_the_time_is_kept_and_not_asked_about(
    operator: ConsoleClient, codes: str, fields: Fields, monkeypatch: pytest.MonkeyPatch
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


async def _allow(tenant: Tenant, hosts: list[str]) -> None:
    path = f"/v1/projects/{tenant.project_id}/allowed-hosts"
    assert (await tenant.api.put(path, params=tenant.query, json={"hosts": hosts})).status == 200


async def test_the_form_says_where_links_may_lead(operator: ConsoleClient, tenant: Tenant, codes: str) -> None:
    assert not (await operator.get(f"{codes}/issue")).find_all(".//p[@id='allowed-hosts']")
    for hosts, expected in (
        ([], "No host is allowed"),
        (["a.example", "*.b.example"], "may lead only to a.example, *.b.example"),
        ([f"h{number}.example" for number in range(7)], "h4.example and 2 more."),
    ):
        await _allow(tenant, hosts)
        page = await operator.get(f"{codes}/issue")
        hint = " ".join("".join(page.find(".//p[@id='allowed-hosts']").itertext()).split())
        assert expected in hint
    operator.core.lose(f"GET /v1/projects/{tenant.project_id}/allowed-hosts")
    assert (await operator.get(f"{codes}/issue")).status == 200


async def test_a_link_that_leads_elsewhere_is_refused_beside_its_address(
    operator: ConsoleClient, tenant: Tenant, codes: str, fields: Fields
) -> None:
    """Of a typed intent, beside the JSON that has the address."""
    await _allow(tenant, ["example.org"])
    typed = {"mode": "json", "type": "link", "action": "open", "resource": '{"url": "https://evil.example/"}'}
    for changes, control, name in (
        ({"url": "https://evil.example/"}, "url", "Address"),
        (typed, "resource", "Resource"),
    ):
        verdict = (await operator.submit(f"{codes}/issue/verdict", fields(**changes))).response.json()
        assert verdict["would_issue"] is False
        assert verdict["sentence"].startswith(f"{name}: This project does not allow this address.")
        for button in ({}, {"check": "yes"}):
            page = await operator.submit(f"{codes}/issue", fields(**changes, **button))
            assert (page.status, page.trouble) == (422, "validation_failed")
            reason = page.find(f".//p[@id='refused-{control}']").text
            assert verdict["sentence"] == f"{name}: {reason}"
            assert page.value(control) == changes[control]
    assert await _codes(tenant) == []
