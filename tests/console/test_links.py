"""Where the links and forms of the pages lead."""

import re
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import pytest
from starlette.routing import Match, Route
from support.console.client import CONSOLE_URL, ConsoleClient, PageAnswer
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock
from support.tenancy.people import People
from support.tenancy.tenant import Tenant, make_second_project

import soundmark.console
from soundmark.console import app

HOSTILE = "\"'><img src=x onerror=alert(1)><script>alert(1)</script>{{ 7 * 7 }}"
INVITATIONS = ("Issue the first", "Choose the hosts")
SCRIPT = (Path(soundmark.console.__file__).parent / "static/js/waiting.js").read_text(encoding="utf-8")
# The paths of downloads, after which a page stays where it is. Python reads the script's pattern alike.
FILE = re.compile(SCRIPT.partition("FILE = /")[2].partition("/;")[0])


async def test_every_link_and_form_of_the_tenants_pages_leads_to_a_page(
    operator: ConsoleClient, tenant: Tenant
) -> None:
    """Every name is markup, and text on every page."""
    await tenant.api.patch(f"/v1/organizations/{tenant.organization_id}", json={"name": HOSTILE})
    await tenant.api.patch(f"/v1/projects/{tenant.project_id}", params=tenant.query, json={"name": HOSTILE})
    campaign = await tenant.make_campaign(HOSTILE)
    intent = {"type": "link", "action": "open", "resource": {"url": "https://example.org/", "title": HOSTILE}}
    await tenant.make_code(campaign_id=campaign["id"], issuer=HOSTILE, intent=intent)
    await tenant.make_key(name=HOSTILE)
    await tenant.make_integration(name=HOSTILE)
    await tenant.make_invitation()
    await tenant.make_webhook_endpoint(description=HOSTILE)
    to_read, known, lost, shown = [f"/organizations/{tenant.organization_id}"], set(), [], 0
    while to_read:
        path = to_read.pop()
        page = await operator.get(path)
        assert page.status == 200, path
        if not page.headers["content-type"].startswith("text/html"):
            assert FILE.search(urlsplit(path).path), f"{path} is a file, for which waiting.js would wait"
            continue
        assert not FILE.search(urlsplit(path).path), path
        assert page.find_all(".//body//img") + page.find_all(".//body//script") == [], path
        shown += HOSTILE in page.text
        lost += [f"{path} sends a form to {action}" for action in _actions(page, path) if not _is_page(action)]
        for link in _links(page, path, f"/organizations/{tenant.organization_id}/"):
            if link in known:
                continue
            known.add(link)
            if _is_page(link):
                to_read.append(link)
            else:
                lost.append(f"{path} links to {link}")

    assert lost == []
    assert any(path.endswith("/deliveries") for path in known)
    assert shown > 20


@pytest.mark.parametrize("role", ["member", "billing"])
async def test_no_page_invites_a_person_to_what_their_role_may_not_do(
    visitors: ConsoleClient, people: People, rival: Rival, clock: FakeClock, role: str
) -> None:
    """The first project is empty, and the other is not."""
    tenant = await people.tenant_of("owner")
    await make_used_project(tenant)
    await people.member(tenant, rival, role, role)
    visitors.sign_in_as(people, role, clock.now())
    at = f"/organizations/{tenant.organization_id}"
    to_read, refused, sent, invitations = [at], [], set(), []
    known = set(to_read)
    while to_read:
        path = to_read.pop()
        page = await visitors.get(path)
        if page.status != 200:
            refused.append(path)
        if not page.headers["content-type"].startswith("text/html"):
            continue
        posted = [each for each in page.find_all(".//main//form") if each.get("method") == "post"]
        sent |= {re.sub(r"[a-z]+_[\w-]{22}", "…", urljoin(path, each.get("action") or path)) for each in posted}
        text = " ".join("".join(page.find(".//main").itertext()).split())
        invitations += [f"{path}: {words}" for words in INVITATIONS if words in text]
        found = {each for each in _links(page, path, f"{at}/") if each not in known}
        known |= found
        to_read += sorted(found)

    assert (refused, invitations) == ([], [])
    assert sent == {"/organizations/…/tickets/new", f"/organizations/…/members/remove?subject_id={role}"}


async def test_a_page_without_rows_says_so_in_place_of_an_empty_table(operator: ConsoleClient, tenant: Tenant) -> None:
    ids = {"organization_id": tenant.organization_id, "project_id": tenant.project_id}
    paths = [
        each.path for each in app.PAGES if isinstance(each, Route) and each.path.count("{") == each.path.count("_id}")
    ]
    own = {path.format(**ids) for path in paths if set(re.findall(r"{(\w+)}", path)) <= ids.keys()}
    shown = 0
    for path in sorted(own):
        page = await operator.get(path)
        if page.status != 200 or not page.headers["content-type"].startswith("text/html"):
            continue
        shown += 1
        assert [table for table in page.find_all(".//table") if not table.findall("./tbody/tr")] == [], path
        assert len(page.find_all(".//h1")) == 1, path
    assert shown > 30


async def test_a_page_that_is_not_there_leads_back_to_its_project_and_organization(
    operator: ConsoleClient, tenant: Tenant
) -> None:
    at = f"/organizations/{tenant.organization_id}"
    project = f"{at}/projects/{tenant.project_id}"
    for path, back in (
        (f"{project}/codes/xr_unknown", [project, at, "/organizations"]),
        (f"{at}/webhooks/whe_unknown", [at, "/organizations"]),
        ("/nowhere", ["/organizations"]),
    ):
        page = await operator.get(path)
        assert page.status == 404
        assert [each.get("href") for each in page.find_all(".//main//p/a")] == back, path


async def make_used_project(tenant: Tenant) -> None:
    """Make a second project with one of everything."""
    other = await make_second_project(tenant)
    campaign = await other.make_campaign()
    await other.make_integration()
    await other.make_code(campaign_id=campaign["id"])
    await other.make_key()


def _links(page: PageAnswer, path: str, within: str) -> list[str]:
    found = (urljoin(path, each.get("href") or "").partition("#")[0] for each in page.find_all(".//a[@href]"))
    return [each for each in found if each.startswith(within)]


def _actions(page: PageAnswer, path: str) -> list[str]:
    return [urljoin(path, each.get("action") or path) for each in page.find_all(".//form")]


def _is_page(address: str) -> bool:
    scope = {"type": "http", "method": "GET", "path": urlsplit(urljoin(CONSOLE_URL, address)).path, "root_path": ""}
    return any(isinstance(each, Route) and each.matches(scope)[0] is not Match.NONE for each in app.PAGES)
