"""The search page, which the command palette shows as well."""

import asyncio
from typing import Final

from soundmark_sdk.client.records import Organization
from starlette.responses import Response
from starlette.routing import Route

from soundmark.console.pages.search.finding import Place, SearchResult
from soundmark.console.pages.search.ids import find_id
from soundmark.console.pages.search.names import find_names, list_pages
from soundmark.console.routing import page
from soundmark.console.visit import Visit
from soundmark.kit.text.ids import may_be_id

_TEXT_CHARS_MAX: Final = 200


async def show(visit: Visit) -> Response:
    """Show what matches the text; without a text, show the pages."""
    text = "".join(each for each in visit.query("q") or "" if each.isprintable())[:_TEXT_CHARS_MAX]
    answer = await visit.core.organizations.page()
    organizations = list(answer.data)
    place = await _find_place(visit, organizations)
    by_id = by_name = SearchResult([])
    if text:
        by_id, by_name = await asyncio.gather(
            find_id(visit, organizations, place, text), find_names(visit, organizations, place, text)
        )
        found = list({each.path: each for each in (*by_id.found, *by_name.found)}.values())
    else:
        found = list_pages(visit, place)
    within = {"organization_id": place.organization.id if place.organization else None, "project_id": place.project_id}
    is_looked_through = answer.next_cursor is None or not may_be_id(text)
    is_whole = bool(by_id.found) or (by_id.is_complete and by_name.is_complete and is_looked_through)
    return visit.page("search/search.html", text=text, found=found, within=within, is_whole=is_whole)


async def _find_place(visit: Visit, organizations: list[Organization]) -> Place:
    """Return the organisation and project that the link to the search names, if the person may see them."""
    wanted, project_id = visit.query("organization_id"), visit.query("project_id")
    directory, subject = visit.console.directory, visit.signed_in.subject
    organization = next((each for each in organizations if each.id == wanted), None)
    if organization is None and wanted is not None:
        organization = await directory.find_organization(subject, visit.core, wanted)
    if organization is None or project_id is None:
        return Place(organization, None)
    project = await directory.find_project(subject, visit.core, organization.id, project_id)
    return Place(organization, None if project is None else project.id)


routes: Final[list[Route]] = [page("/search", show)]
