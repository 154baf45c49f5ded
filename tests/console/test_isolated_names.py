"""Names that are written from right to left, in every place that shows one: they reorder nothing around them."""

import re
from typing import Any
from xml.etree.ElementTree import Element

from support.console.client import ConsoleClient, PageAnswer
from support.console.page_paths import list_paths, make_one_of_each
from support.console.planting import plant
from support.tenancy.tenant import Tenant

MARK = "שלום"
# Each lays its text out by itself, or shows it to no eye.
ALONE = {"option", "textarea", "pre", "title", "button"}


def plant_marks(document: Any) -> Any:
    """Return an answer of Core in which everything that people typed is written from right to left."""
    return plant(document, lambda member: f"{MARK} {member}")


def find_exposed(page: PageAnswer) -> list[str]:
    """Return the texts that hold a planted name beside other words, without an element that isolates it."""
    parents = {child: parent for parent in page.tree.iter() for child in parent}
    exposed = []
    for element in page.tree.iter():
        if MARK in (element.text or "") and not is_isolated(element, parents):
            exposed.append(element.text or "")
        if MARK in (element.tail or "") and not is_isolated(parents[element], parents):
            exposed.append(element.tail or "")
    return [" ".join(each.split()) for each in exposed]


def is_isolated(element: Element, parents: dict[Element, Element]) -> bool:
    """Return whether the element that a text is in, or one around it, isolates this text and no other words."""
    while True:
        if element.tag in ALONE or element.get("class") == "visually-hidden":
            return True
        text = "".join(element.itertext()).strip()
        if element.tag == "bdi" or element.get("dir") == "auto":
            return re.fullmatch(rf"{MARK} \w+", text) is not None or element.get("class") == "message-text"
        if element not in parents:
            return False
        element = parents[element]


async def test_every_name_on_every_page_keeps_its_direction_to_itself(operator: ConsoleClient, tenant: Tenant) -> None:
    ids = await make_one_of_each(operator, tenant, plant_marks)
    # Their members called `name` are no names of tenants.
    operator.core.alter("GET /v1/platform/settings", lambda document: document)
    operator.core.alter("GET *", plant_marks)
    queries = ("/search?q=" + MARK, f"/organizations/{tenant.organization_id}/members/remove?subject_id=somebody")

    exposed, shown = {}, set()
    for path in (*list_paths(ids), *queries):
        page = await operator.get(path)
        if "text/html" in page.headers.get("content-type", "") and page.status < 500:
            shown |= {path} if MARK in page.text else set()
            if found := find_exposed(page):
                exposed[path] = found
    assert exposed == {}
    assert len(shown) > 40, shown


async def test_a_message_for_the_next_page_isolates_the_name_in_it(operator: ConsoleClient, tenant: Tenant) -> None:
    campaigns = f"/organizations/{tenant.organization_id}/projects/{tenant.project_id}/campaigns"

    page = await operator.follow(await operator.submit(campaigns, {"name": f"{MARK} name"}))
    stopped = await operator.follow(await operator.submit(page.find(".//main//a[@class='button danger']").get("href")))  # type: ignore[arg-type]  # each link has one

    for each, message in ((page, f"{MARK} name was created."), (stopped, f"{MARK} name is stopped.")):
        notice = each.find(".//p[@class='notice'][@role='status']")
        assert "".join(notice.itertext()).startswith(message)
        assert notice.findtext("bdi") == f"{MARK} name"
    assert [find_exposed(each) for each in (page, stopped)] == [[], []]
