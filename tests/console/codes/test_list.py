"""The list of a project's Codes."""

import re
from datetime import timedelta
from html import unescape
from urllib.parse import urljoin

import pytest
from support.console.client import ConsoleClient, PageAnswer
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock
from support.tenancy.tenant import Tenant, make_second_project

from soundmark.kit.text.timestamps import format_timestamp

HOSTILE = "<img src=x onerror=alert(1)> \"'&{{7*7}}"


def _listed(page: PageAnswer) -> list[str]:
    return [str(link.get("href")).rpartition("/")[2] for link in page.find_all(".//tbody/tr/th/a")]


async def test_an_empty_project_says_so(operator: ConsoleClient, codes: str) -> None:
    assert "No Codes yet." in (await operator.get(codes)).text


async def test_codes_are_listed_newest_first_with_their_facts(
    operator: ConsoleClient, tenant: Tenant, codes: str
) -> None:
    campaign = await tenant.make_campaign()
    first = await tenant.make_code(issuer=HOSTILE, campaign_id=campaign["id"])
    second = await tenant.make_code()

    page = await operator.get(codes)

    assert _listed(page) == [second["xr_id"], first["xr_id"]]
    row = " ".join(page.find_all(".//tbody/tr")[1].itertext())
    assert HOSTILE in row
    assert "Tonight" in row
    assert "active" in row
    assert not page.find_all(".//img")


async def test_a_row_says_what_its_code_does(operator: ConsoleClient, tenant: Tenant, codes: str) -> None:
    for intent in (
        {"type": "coupon", "action": "redeem", "resource": {"title": HOSTILE}},
        {"type": "link", "action": "open", "resource": {"url": "https://Example.org:8443/a?b=c#d", "title": "Tonight"}},
        {"type": "link", "action": "open", "resource": {"url": "https://good.example@evil.example/\u202e"}},
        {"type": "link", "action": "open", "resource": {"url": "https://example.org/" + "a" * 200}},
    ):
        await tenant.make_code(intent=intent)

    page = await operator.get(codes)

    rows = page.find_all(".//tbody/tr/th")
    shown = ["".join(row.find("./a").itertext()) for row in rows]  # type: ignore[union-attr]  # each row has a link
    assert [len(text) > 90 for text in shown] == [True, False, False, False]
    assert shown[0].startswith("example.org/aaa")
    assert shown[0].endswith("a…")
    assert shown[1:] == ["https://good.example@evil.example/\\u202e", "example.org:8443/a?b=c#d", "coupon, redeem"]
    assert [len(row.findall(".//strong")) for row in rows] == [1, 0, 1, 0], "only of a plain link is there a host"
    assert "Tonight" in "".join(rows[2].itertext())
    assert HOSTILE in "".join(rows[3].itertext())
    assert not page.find_all(".//img")


async def test_the_heads_of_times_sort_the_list(
    operator: ConsoleClient, tenant: Tenant, codes: str, clock: FakeClock
) -> None:
    made = []
    for lifetime_s in (3000, 1000, 2000):
        made.append((await tenant.make_code(lifetime_s=lifetime_s))["xr_id"])
        clock.advance(seconds=1)
    issued_first, expires_first, middle = made
    page = await operator.get(f"{codes}?issuer=Radio+Nordlicht")
    for head, sort, expected in (
        (None, "descending", [middle, expires_first, issued_first]),
        ("Issued", "ascending", [issued_first, expires_first, middle]),
        ("Issued", "descending", [middle, expires_first, issued_first]),
        ("Expires", "descending", [issued_first, middle, expires_first]),
        ("Expires", "ascending", [expires_first, middle, issued_first]),
    ):
        if head is not None:
            [link] = [each for each in page.find_all(".//thead//a") if str(each.text).startswith(head)]
            page = await operator.get(str(link.get("href")))
        assert _listed(page) == expected, head
        [sorted_by] = page.find_all(".//thead//th[@aria-sort]")
        assert sorted_by.get("aria-sort") == sort
        assert page.value("issuer") == "Radio Nordlicht", "the filters stay"
    assert page.value("sort") == "expires_at", "the order stays when somebody filters"


async def test_codes_are_found_by_how_their_address_begins(
    operator: ConsoleClient, tenant: Tenant, codes: str, subtests: pytest.Subtests
) -> None:
    ids = [
        (await tenant.make_code(intent={"type": "link", "action": "open", "resource": {"url": url}}))["xr_id"]
        for url in ("https://example.org/tonight", "https://example.org/quiz", "https://elsewhere.example/")
    ]
    tonight, quiz, elsewhere = ids
    for typed, expected in (
        ("example.org", [quiz, tonight]),
        ("EXAMPLE.org/to", [tonight]),
        ("https://example.org/q", [quiz]),
        ("htt", [elsewhere, quiz, tonight]),
        ("http://example.org", []),
        ("nowhere", []),
    ):
        with subtests.test(typed=typed):
            page = await operator.get(codes, params={"address_prefix": typed})
            assert _listed(page) == expected
            assert page.value("address_prefix") == typed
    page = await operator.get(codes, params={"address_prefix": "a" * 250})
    assert (page.status, page.trouble) == (422, "validation_failed")
    assert page.find(".//p[@id='refused-address_prefix']").text == "Use at most 200 characters."


async def test_only_codes_of_the_project_are_listed(operator: ConsoleClient, tenant: Tenant, codes: str) -> None:
    other = await make_second_project(tenant)
    await other.make_code()

    assert _listed(await operator.get(codes)) == []


async def test_every_filter_of_the_api_narrows_the_list(
    operator: ConsoleClient, tenant: Tenant, codes: str, clock: FakeClock
) -> None:
    campaign = await tenant.make_campaign()
    old = await tenant.make_code(issuer="Radio Süd", campaign_id=campaign["id"])
    clock.advance(hours=1)
    between = format_timestamp(clock.now() - timedelta(minutes=30)).removesuffix("Z")
    revoked = await tenant.make_code()
    await tenant.revoke(revoked["xr_id"])

    for query, expected in (
        ({"issuer": "Radio Süd"}, [old["xr_id"]]),
        ({"campaign_id": campaign["id"]}, [old["xr_id"]]),
        ({"status": "revoked"}, [revoked["xr_id"]]),
        ({"created_from": between}, [revoked["xr_id"]]),
        ({"created_to": between}, [old["xr_id"]]),
        ({"status": "expired"}, []),
    ):
        page = await operator.get(codes, params=query)
        assert _listed(page) == expected, query
        [(name, value)] = query.items()
        assert page.value(name) == value, "the filter stays in its field"
    assert "No Codes match these filters." in page.text


async def test_issuing_keeps_the_campaign_of_the_list(operator: ConsoleClient, tenant: Tenant, codes: str) -> None:
    campaign = await tenant.make_campaign()

    page = await operator.get(f"{codes}?campaign_id={campaign['id']}")

    [issue] = [each for each in page.find_all(".//main//a") if each.text == "Issue Codes"]
    assert (await operator.get(str(issue.get("href")))).value("campaign_id") == campaign["id"]


async def test_a_filter_time_is_read_in_its_zone(operator: ConsoleClient, tenant: Tenant, codes: str) -> None:
    code = await tenant.make_code()
    here = tenant.api.clock.now() + timedelta(hours=8, minutes=30)

    page = await operator.get(
        codes, params={"created_to": here.strftime("%Y-%m-%dT%H:%M"), "created_to_zone": "Asia/Tokyo"}
    )
    assert _listed(page) == []
    page = await operator.get(codes, params={"created_to": here.strftime("%Y-%m-%dT%H:%M")})
    assert _listed(page) == [code["xr_id"]]


@pytest.mark.parametrize("moment", ["soon", "0001-01-01T00:00", "2026-02-30T10:00"])
async def test_a_time_that_does_not_exist_is_refused_beside_its_field(
    operator: ConsoleClient, codes: str, moment: str
) -> None:
    page = await operator.get(codes, params={"created_from": moment, "created_from_zone": "Asia/Tokyo"})

    assert page.status == 422
    assert page.value("created_from") == moment
    assert page.find(".//p[@id='refused-created_from']").text == "Enter a date and time."


@pytest.mark.parametrize(
    ("query", "field", "reason"),
    [
        (
            {"created_from": "2026-07-02T10:00", "created_to": "2026-07-01T10:00"},
            "created_from",
            "The beginning must be before the end.",
        ),
        ({"issuer": "R" * 161}, "issuer", "Use at most 160 characters."),
    ],
)
async def test_a_filter_that_core_refuses_stays_in_the_form_with_the_reason(
    operator: ConsoleClient, codes: str, query: dict[str, str], field: str, reason: str
) -> None:
    page = await operator.get(codes, params=query)

    assert (page.status, page.trouble) == (422, "validation_failed")
    assert {name: page.value(name) for name in query} == query
    assert page.find(f".//p[@id='refused-{field}']").text == reason


async def test_a_status_that_does_not_exist_is_refused_beside_its_field(
    operator: ConsoleClient, tenant: Tenant, codes: str
) -> None:
    await tenant.make_code()

    page = await operator.get(codes, params={"status": "bogus"})

    assert (page.status, page.trouble) == (422, "validation_failed")
    assert page.find(".//p[@id='refused-status']").text == "Choose one of the listed values."
    assert _listed(page) == []


async def test_a_made_up_cursor_is_refused_in_words(operator: ConsoleClient, codes: str) -> None:
    page = await operator.get(codes, params={"cursor": "made-up"})

    assert page.status == 422
    assert page.trouble == "invalid_cursor"


async def test_a_thousand_codes_are_reached_page_by_page(
    operator: ConsoleClient, tenant: Tenant, codes: str, rival: Rival
) -> None:
    await tenant.make_quota(rival, 1_000)
    for _ in range(10):
        body = tenant.code_body(count=100)
        assert (await tenant.api.post("/v1/codes/batch", json=body)).status == 201
    path: str | None = f"{codes}?issuer=Radio+Nordlicht"
    seen: list[str] = []
    while path is not None:
        # A strict parser takes seconds for each page.
        html = (await operator.get(path)).html
        seen += re.findall(r'href="codes/(xr_[^"]+)"', html)
        following = re.search(r'<a rel="next" href="([^"]+)"', html)
        path = None if following is None else unescape(following[1])
    assert len(seen) == len(set(seen)) == 1_000
    assert f'<a href="{codes}?issuer=Radio+Nordlicht">First page</a>' in html


async def test_every_page_of_codes_speaks_french(
    operator: ConsoleClient, tenant: Tenant, codes: str, clock: FakeClock
) -> None:
    french = operator.other(language="fr").sign_in_as_operator(clock.now())
    active, revoked = await tenant.make_code(), await tenant.make_code()
    await tenant.revoke(revoked["xr_id"])

    for path, words in (
        ("", "Sélectionnez jusqu’à 100 Codes."),
        ("/issue", "Émettre des Codes"),
        ("/recover", "Demandes sans réponse"),
        (f"/revoke?xr_ids={active['xr_id']}", "1 Code sera révoqué."),
        (f"/{active['xr_id']}", "La console a vérifié la signature"),
        (f"/{active['xr_id']}/revoke", "Révoquer ce Code"),
        (f"/{revoked['xr_id']}", "Ce Code a été révoqué : il n’a plus de son."),
        (f"/{revoked['xr_id']}/revoke", "il n’y a rien à révoquer"),
    ):
        page = await french.get(codes + path)
        assert page.status == 200
        assert words in page.text, path
        assert page.find(".").get("lang") == "fr"


async def test_the_first_view_of_a_hundred_codes_is_small(operator: ConsoleClient, tenant: Tenant, codes: str) -> None:
    """People at a broadcaster's site may share one slow line."""
    campaign = await tenant.make_campaign("A campaign with a name of usual length")
    body = tenant.code_body(count=100, campaign_id=campaign["id"])
    assert (await tenant.api.post("/v1/codes/batch", json=body)).status == 201

    html = (await operator.get(codes)).html
    waiting = set(re.findall(r'"(/static/[^"?]+)', html))
    sizes = {codes: len(html.encode())}
    while waiting:
        path = waiting.pop()
        answer = await operator.get(path)
        assert answer.status == 200, path
        sizes[path] = len(answer.response.content)
        imported = re.findall(r'^import .* from "(\.\.?/[^"]+)"', answer.response.text, re.MULTILINE)
        waiting |= {urljoin(path, each) for each in imported} - sizes.keys()
    assert sum(sizes.values()) < 150_000, sizes
