"""The names of organisations and projects, for headings and navigation."""

from dataclasses import dataclass
from typing import Final

from soundmark_sdk.client import AsyncClient
from soundmark_sdk.client.records import Organization, Project

from soundmark.kit.clock import Clock

# Long enough for the pages of one click, short enough that a renamed organisation is soon seen everywhere.
_KEPT_S: Final = 5.0
_ENTRIES_MAX: Final = 2_000


@dataclass(frozen=True, slots=True)
class _Entry:
    until_s: float
    organizations: dict[str, Organization]
    projects: dict[str, Project]


class Directory:
    """What each person's pages found lately, by that person's subject, so that nobody is shown another's list."""

    def __init__(self, clock: Clock) -> None:
        self._clock: Final = clock
        self._entries: Final[dict[str, _Entry]] = {}

    async def find_organization(self, subject: str, core: AsyncClient, organization_id: str) -> Organization | None:
        """Return an organisation that the person is a member of, or None.

        Raises: soundmark_sdk.ClientFailure.
        """
        entry, cursor = self._get_entry(subject), None
        while organization_id not in entry.organizations:
            page = await core.organizations.page(cursor=cursor)
            entry.organizations.update({each.id: each for each in page.data})
            if (cursor := page.next_cursor) is None:
                break
        return entry.organizations.get(organization_id)

    async def find_project(
        self, subject: str, core: AsyncClient, organization_id: str, project_id: str
    ) -> Project | None:
        """Return a project of an organisation, or None.

        Raises: soundmark_sdk.ClientFailure.
        """
        entry, cursor = self._get_entry(subject), None
        while project_id not in entry.projects:
            page = await core.projects.page(organization_id=organization_id, cursor=cursor)
            entry.projects.update({each.id: each for each in page.data})
            if (cursor := page.next_cursor) is None:
                break
        found = entry.projects.get(project_id)
        return found if found is not None and found.organization_id == organization_id else None

    def list_organizations(self, subject: str) -> list[Organization]:
        """Return the organisations that this person's pages found lately, without a call."""
        return [*self._get_entry(subject).organizations.values()]

    def list_projects(self, subject: str, organization_id: str) -> list[Project]:
        """Return the projects of an organisation that this person's pages found lately, without a call."""
        projects = self._get_entry(subject).projects.values()
        return [each for each in projects if each.organization_id == organization_id]

    def forget(self, subject: str) -> None:
        """Forget what this person's pages found, after something was renamed, created or deleted."""
        self._entries.pop(subject, None)

    def _get_entry(self, subject: str) -> _Entry:
        now_s = self._clock.monotonic_s()
        entry = self._entries.get(subject)
        if entry is None or entry.until_s < now_s:
            if len(self._entries) >= _ENTRIES_MAX:
                self._entries.clear()
            entry = self._entries[subject] = _Entry(now_s + _KEPT_S, {}, {})
        return entry
