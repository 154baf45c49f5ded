"""What the frame around a page shows: the navigation, what one can switch to, and where a search begins."""

from dataclasses import dataclass
from typing import Final, TypeVar
from urllib.parse import urlencode

from soundmark_sdk.client.records import Organization, Project

from soundmark.console.directory import Directory
from soundmark.console.navigation import Area, Section, find_area, list_sections
from soundmark.console.session import Session

_Tenant = TypeVar("_Tenant", bound=Organization | Project)
_SWITCHED_MAX: Final = 12  # As many as a menu shows without scrolling; the list has them all.


@dataclass(frozen=True, slots=True)
class Frame:
    """The frame of one page. `organizations` and `projects` are some that one can switch to, the current among them."""

    sections: list[Section]
    area: Area | None
    organizations: list[Organization]
    projects: list[Project]
    search_path: str


def make_frame(
    directory: Directory,
    session: Session | None,
    path: str,
    *,
    organization: Organization | None,
    project: Project | None,
) -> Frame:
    """Return the frame of the page at a path. It makes no call: it offers what the person's pages found lately."""
    if session is None or organization is None:
        return Frame([], None, [], [], "/search")
    sections = list_sections(organization.role, organization.id, project.id if project else None)
    within = {"organization_id": organization.id} | ({"project_id": project.id} if project else {})
    return Frame(
        sections,
        find_area(sections, path),
        _choose(directory.list_organizations(session.subject), organization),
        _choose(directory.list_projects(session.subject, organization.id), project) if project else [],
        f"/search?{urlencode(within)}",
    )


def _choose(known: list[_Tenant], current: _Tenant) -> list[_Tenant]:
    """Return as many as a menu shows; the current one is always among them."""
    shown = known[:_SWITCHED_MAX]
    return shown if any(each.id == current.id for each in shown) else [current, *shown[:-1]]
