"""Forms that issue nothing: refused fields, quotas, closed campaigns and hosts that are not allowed."""

from datetime import UTC, datetime

import pytest
from support.console.client import ConsoleClient, MakeFields
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock
from support.tenancy.suspension import suspend
from support.tenancy.tenant import Tenant


async def test_a_field_that_is_refused_says_why_and_nothing_is_issued(
    operator: ConsoleClient, tenant: Tenant, codes: str, fields: MakeFields, subtests: pytest.Subtests
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
            assert await tenant.list_codes() == []


async def test_hostile_values_are_shown_again_as_text(
    operator: ConsoleClient, tenant: Tenant, codes: str, fields: MakeFields
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
    operator: ConsoleClient, tenant: Tenant, codes: str, fields: MakeFields, *, rival: Rival, clock: FakeClock
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
    operator: ConsoleClient, tenant: Tenant, codes: str, fields: MakeFields
) -> None:
    later = f"{tenant.api.clock.now().year + 1}-01-01T00:00:00Z"
    campaign = await tenant.make_campaign(starts_at=later)

    page = await operator.submit(f"{codes}/issue", fields(campaign_id=campaign["id"]))

    assert page.status == 409
    assert page.trouble == "campaign_not_open"
    assert page.value("campaign_id") == campaign["id"]
    assert await tenant.list_codes() == []


@pytest.mark.parametrize("code", ["organization_suspended", "resource_deletion_in_progress"])
async def test_a_form_of_an_earlier_page_is_shown_again_and_its_request_forgotten(
    operator: ConsoleClient, tenant: Tenant, codes: str, fields: MakeFields, *, rival: Rival, code: str
) -> None:
    """The organisation was suspended, or its deletion began, while the form was filled in."""
    await operator.get(f"{codes}/issue")
    if code == "organization_suspended":
        assert (await suspend(tenant.api, tenant.organization_id)).status == 200
    else:
        await rival.run("UPDATE organizations SET deletion_requested_at = now()")

    page = await operator.submit(f"{codes}/issue", fields(issuer="Radio Nordlicht"))

    assert page.trouble == code
    assert page.value("issuer") == "Radio Nordlicht"
    assert page.find(".//section[@id='kept-requests']").get("data-settled") == "key-of-the-tests"
    assert await tenant.list_codes() == []


async def test_a_key_that_the_console_did_not_make_is_refused(
    operator: ConsoleClient, tenant: Tenant, codes: str, fields: MakeFields
) -> None:
    page = await operator.submit(f"{codes}/issue", fields(idempotency_key="short"))

    assert page.status == 400
    assert page.trouble == "form_malformed"
    assert await tenant.list_codes() == []


async def test_a_link_that_leads_elsewhere_is_refused_beside_its_address(
    operator: ConsoleClient, tenant: Tenant, codes: str, fields: MakeFields
) -> None:
    """Of a typed intent, beside the JSON that has the address."""
    await tenant.allow_hosts(["example.org"])
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
    assert await tenant.list_codes() == []
