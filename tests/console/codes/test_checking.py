"""What the form says before it issues anything: what listeners will see, and whether Core would take it."""

from support.console.client import ConsoleClient, MakeFields
from support.database.rival import Rival
from support.tenancy.tenant import Tenant


async def test_a_check_shows_what_listeners_will_see(operator: ConsoleClient, codes: str, fields: MakeFields) -> None:
    page = await operator.submit(f"{codes}/issue", fields(check="yes", title="<b>Tonight</b>"))

    shown = page.find(".//section[@id='preview']")
    assert shown.get("hidden") is None
    assert (shown.find(".//strong").text, shown.find(".//bdi[@class='text']").text) == ("example.org", "/offer")  # type: ignore[union-attr]  # both are there
    assert "<b>Tonight</b>" in "".join(shown.itertext())
    assert (await operator.get(f"{codes}/issue")).find(".//section[@id='preview']").get("hidden") is not None


async def test_check_says_what_would_happen_and_issues_nothing(
    operator: ConsoleClient, tenant: Tenant, codes: str, fields: MakeFields
) -> None:
    page = await operator.submit(f"{codes}/issue", fields(count="7", check="yes"))

    verdict = page.find(".//p[@id='verdict']")
    assert verdict.get("data-would-issue") == "yes"
    assert verdict.text == "Ready to issue. 100 Codes are left this month."
    assert page.value("count") == "7"
    assert page.value("idempotency_key") == "key-of-the-tests"
    assert await tenant.list_codes() == []


async def test_the_verdict_names_the_reason(
    operator: ConsoleClient, tenant: Tenant, codes: str, fields: MakeFields, rival: Rival
) -> None:
    await tenant.make_quota(rival, 2)

    for changes, would_issue, words in (
        ({}, True, "Ready to issue. 2 Codes are left this month."),
        ({"count": "3"}, False, "Cannot be issued: This would exceed this month’s quota of Codes. 2 Codes are left"),
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
    assert await tenant.list_codes() == []


async def test_a_foreign_form_gets_no_verdict_and_no_tuple(
    operator: ConsoleClient, codes: str, fields: MakeFields
) -> None:
    for path in ("verdict", "tuple"):
        answer = await operator.submit(f"{codes}/issue/{path}", fields(), headers={"origin": "https://evil.example"})
        assert answer.status == 403
