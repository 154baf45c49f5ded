"""Names that are markup, on the pages that every other page is part of: they are text."""

import pytest
from starlette.routing import Route
from support.console.client import CSRF_TOKEN, ConsoleClient, PageAnswer
from support.processes.fake_clock import FakeClock
from support.tenancy.people import People
from support.tenancy.tenant import Tenant

from soundmark.console import app
from soundmark.console.session import Session

HOSTILE = "\"'><img src=x onerror=alert(1)><script>alert(1)</script>{{ 7 * 7 }}"


def is_text(page: PageAnswer) -> bool:
    """Return whether the name is on the page, in full and without an element of its own."""
    return HOSTILE in page.text and not page.find_all(".//body//script") and not page.find_all(".//body//img")


async def test_the_name_of_a_project_is_text_on_its_own_pages(operator: ConsoleClient, tenant: Tenant) -> None:
    projects = f"/organizations/{tenant.organization_id}/projects"
    project_id = await tenant.api.make_project(tenant.organization_id, HOSTILE)
    own = [
        route.path.format(organization_id=tenant.organization_id, project_id=project_id)
        for route in app.PAGES
        if isinstance(route, Route) and "{project_id}" in route.path and route.path.count("{") == 2
    ]
    pages = {path: await operator.get(path) for path in [projects, *own]}
    shown = [path for path, page in pages.items() if "text/html" in page.headers["content-type"] and page.status == 200]

    assert {projects, f"{projects}/{project_id}", f"{projects}/{project_id}/delete"} <= set(shown)
    assert [path for path in shown if not is_text(pages[path])] == []
    assert pages[f"{projects}/{project_id}/settings"].value("name") == HOSTILE


@pytest.mark.parametrize("email", [HOSTILE, None], ids=["e-mail address", "subject"])
async def test_the_person_who_is_signed_in_is_text_in_the_header(
    visitors: ConsoleClient, people: People, clock: FakeClock, email: str | None
) -> None:
    """Both are what the identity provider says."""
    token = people.issuer.token(HOSTILE)
    visitors.sign_in(
        Session("oidc", HOSTILE, email, CSRF_TOKEN, clock.now(), has_second_factor=True, access_token=token)
    )

    page = await visitors.get("/organizations")

    assert page.find(".//header//span[@class='who']").text == HOSTILE
    assert is_text(page)
