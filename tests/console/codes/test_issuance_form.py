"""The form that issues Codes: its fields, and what it is filled in with."""

from datetime import timedelta
from zoneinfo import ZoneInfo

from support.console.client import ConsoleClient, MakeFields
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock
from support.tenancy.tenant import Tenant


async def test_no_field_that_an_intent_needs_is_called_optional(operator: ConsoleClient, codes: str) -> None:
    page = await operator.get(f"{codes}/issue")

    assert page.find(".//label[@for='field-resource']").text == "Resource"
    optional = [each for each in page.find_all(".//label") if each.find("./span[@class='optional']") is not None]
    assert [each.get("for") for each in optional] == ["field-title"]


async def test_the_issuer_is_the_last_one_or_else_the_organizations_name(
    operator: ConsoleClient, tenant: Tenant, codes: str, fields: MakeFields
) -> None:
    operator.core.refuse("GET /v1/codes", 503, "database_unavailable")
    assert (await operator.get(f"{codes}/issue")).value("issuer") == "Radio Nordlicht"
    operator.core.recover()
    assert (await operator.get(f"{codes}/issue")).value("issuer") == "Radio Nordlicht"
    await tenant.make_code(issuer=f"Radio Süd {tenant.project_id}")

    assert (await operator.get(f"{codes}/issue")).value("issuer") == f"Radio Süd {tenant.project_id}"
    assert (await operator.submit(f"{codes}/issue", fields(issuer=""))).value("issuer") == "", "it was removed"


async def test_a_preset_is_the_expiry_in_the_zone_of_the_form_and_loses_nothing(
    operator: ConsoleClient, tenant: Tenant, codes: str, fields: MakeFields, clock: FakeClock
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
    assert await tenant.list_codes() == []


async def test_the_first_button_of_the_form_issues(operator: ConsoleClient, codes: str) -> None:
    """Enter in a field presses it."""
    form = (await operator.get(f"{codes}/issue")).find(".//form[@id='issuance']")

    assert [each.get("name") for each in form.findall(".//button")][:2] == ["issue", "preset"]


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


async def test_the_form_says_where_links_may_lead(operator: ConsoleClient, tenant: Tenant, codes: str) -> None:
    assert not (await operator.get(f"{codes}/issue")).find_all(".//p[@id='allowed-hosts']")
    for hosts, expected in (
        ([], "No host is allowed"),
        (["a.example", "*.b.example"], "may lead only to a.example, *.b.example"),
        ([f"h{number}.example" for number in range(7)], "h4.example and 2 more."),
    ):
        await tenant.allow_hosts(hosts)
        page = await operator.get(f"{codes}/issue")
        hint = " ".join("".join(page.find(".//p[@id='allowed-hosts']").itertext()).split())
        assert expected in hint
    operator.core.lose(f"GET /v1/projects/{tenant.project_id}/allowed-hosts")
    assert (await operator.get(f"{codes}/issue")).status == 200
